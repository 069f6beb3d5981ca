"""The bug of argoproj-labs/argocd-operator#478: when a namespace was added, it was added to a list
in a shared Secret, but when the namespace was deleted, nothing removed it from the list. In the same
way, the entry of a deleted Tenant stays here."""


def entries(stored, wanted):
    return {**stored, **wanted}
