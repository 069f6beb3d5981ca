"""The Secrets are watched as well. A Secret leads to the VaultSecret of the same name,
which created it."""

from bug import itself


def watched(vault_secrets, secrets):
    return [(vault_secrets, itself), (secrets, itself)]
