"""The name of the Agent is a part of the name, so each Agent has a ServiceAccount of its own."""


def account_name(agent):
    return agent + "-agent"
