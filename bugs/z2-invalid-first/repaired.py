"""The cleanup needs nothing of the spec, so a Tank that is being deleted may be invalid."""


def must_be_valid(tank):
    return "deletionTimestamp" not in tank["metadata"]
