"""The Secrets are watched as well. An event of a Secret enqueues the
VaultSecret of the same name, from which the Secret was created."""

from bug import itself


def watched(vault_secrets, secrets):
    return [(vault_secrets, itself), (secrets, itself)]
