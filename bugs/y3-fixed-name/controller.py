"""Class Y3: the children of two resources in one namespace have the same name.

Each Agent needs a ServiceAccount. The program needs only Python and KUBECONFIG:

    python3 controller.py [--repaired]
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "internal", "python"))

import bug
import repaired
from api import Client
from loop import Loop, key_of

GROUP = "bugs.koboshi.dev"
AGENTS = f"/apis/{GROUP}/v1/agents"
ACCOUNTS = "/api/v1/serviceaccounts"


class Controller:
    """Reconciles Agents. The function account_name returns the name of the ServiceAccount of the
    Agent with a name."""

    def __init__(self, client, account_name):
        self.client = client
        self.account_name = account_name

    def reconcile(self, namespace, name):
        path = f"/apis/{GROUP}/v1/namespaces/{namespace}/agents/{name}"
        agent = self.client.get(path)
        if agent is None or "deletionTimestamp" in agent["metadata"]:
            return  # the garbage collector does the rest
        self.ensure(agent)
        if not agent.get("status", {}).get("ready"):
            self.client.call("PUT", f"{path}/status", {**agent, "status": {"ready": True}})

    def ensure(self, agent):
        namespace, name = key_of(agent)
        want = account(agent, self.account_name(name))
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        path = f"{accounts}/{want['metadata']['name']}"
        have = self.client.get(path)
        if have is None:
            self.client.call("POST", accounts, want)
            return
        owners = have["metadata"].get("ownerReferences", [])
        if "deletionTimestamp" in have["metadata"] or owners and not owned_by(owners, agent):
            return  # the deletion is an event; the account of another owner stays as it is
        field = "automountServiceAccountToken"
        if have.get(field) != want[field] or owners != want["metadata"]["ownerReferences"]:
            have[field] = want[field]
            have["metadata"]["ownerReferences"] = want["metadata"]["ownerReferences"]
            self.client.call("PUT", path, have)


def owned_by(owners, agent):
    return any(owner["uid"] == agent["metadata"]["uid"] for owner in owners)


def account(agent, account_name):
    namespace, name = key_of(agent)
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {
            "namespace": namespace,
            "name": account_name,
            "ownerReferences": [{
                "apiVersion": f"{GROUP}/v1",
                "kind": "Agent",
                "name": name,
                "uid": agent["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }],
        },
        "automountServiceAccountToken": agent["spec"]["mount"],
    }


def itself(obj):
    return [key_of(obj)]


def its_agents(obj):
    owners = obj["metadata"].get("ownerReferences", [])
    return [(obj["metadata"]["namespace"], owner["name"]) for owner in owners if owner["kind"] == "Agent"]


def main():
    twin = repaired if "--repaired" in sys.argv[1:] else bug
    client = Client(os.environ["KUBECONFIG"])
    watched = [(AGENTS, itself), (ACCOUNTS, its_agents)]
    Loop(client, AGENTS, watched, Controller(client, twin.account_name).reconcile).run()


if __name__ == "__main__":
    main()
