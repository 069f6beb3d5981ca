// The label by which a Secret says which SecretSet it is of.
export const label = 'bugs.koboshi.dev/secretset';
