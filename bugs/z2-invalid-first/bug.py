"""The bug of K8SPXC-845 in Percona's operator for XtraDB, and of percona-server-mongodb-operator#1630:
the spec was validated before the deletion was handled. So the finalizer of an invalid cluster was
never removed, and the cluster never went."""


def must_be_valid(tank):
    return True
