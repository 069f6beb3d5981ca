"""The Secrets are watched as well, and lead to the VaultSecret of their name, which
is the one that made them."""

from bug import itself


def watched(vault_secrets, secrets):
    return [(vault_secrets, itself), (secrets, itself)]
