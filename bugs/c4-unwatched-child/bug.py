"""The bug of bitwarden/sm-kubernetes#59: only the VaultSecrets are watched. If a Secret
is deleted, the controller does not notice, and the Secret stays missing until another
event leads to a reconcile."""


def watched(vault_secrets, secrets):
    return [(vault_secrets, itself)]


def itself(obj):
    return [(obj["metadata"]["namespace"], obj["metadata"]["name"])]
