"""The bug of istio/istio#24644, which humio/humio-operator#97 also repairs: the ServiceAccount has the
same name for every Agent of a namespace. It belongs to the Agent that came first, so it is deleted
together with this Agent, although the others still need it."""


def account_name(agent):
    return "agent"
