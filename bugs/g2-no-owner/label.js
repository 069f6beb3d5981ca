// The label that names the SecretSet of a Secret.
export const label = 'bugs.koboshi.dev/secretset';
