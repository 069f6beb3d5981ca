"""The list consists of the Tenants that exist. What was stored before does not matter."""


def entries(stored, wanted):
    return wanted
