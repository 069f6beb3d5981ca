"""The Secrets are watched as well. A Secret leads to the VaultSecret of the same name,
from which it was created."""

from bug import itself


def watched(vault_secrets, secrets):
    return [(vault_secrets, itself), (secrets, itself)]
