"""Class C4: the controller does not watch an object that it depends on.

For each VaultSecret there is one Secret. The program needs only Python and KUBECONFIG:

    python3 controller.py [--repaired]
"""

import base64
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "internal", "python"))

import bug
import repaired
from api import Client
from loop import Loop, key_of

GROUP = "bugs.koboshi.dev"
VAULT_SECRETS = f"/apis/{GROUP}/v1/vaultsecrets"
SECRETS = "/api/v1/secrets"


class Controller:
    def __init__(self, client):
        self.client = client

    def reconcile(self, namespace, name):
        owner_path = f"/apis/{GROUP}/v1/namespaces/{namespace}/vaultsecrets/{name}"
        owner = self.client.get(owner_path)
        if owner is None or "deletionTimestamp" in owner["metadata"]:
            return  # the garbage collector does the rest
        self.ensure_secret(owner)
        if owner.get("status", {}).get("synced") != owner["spec"].get("value"):
            owner["status"] = {"synced": owner["spec"].get("value")}
            self.client.call("PUT", owner_path + "/status", owner)

    def ensure_secret(self, owner):
        namespace, name = key_of(owner)
        secrets = f"/api/v1/namespaces/{namespace}/secrets"
        want = secret_for(owner)
        have = self.client.get(f"{secrets}/{name}")
        if have is None:
            self.client.call("POST", secrets, want)
            return
        if "deletionTimestamp" in have["metadata"]:
            return  # the deletion is an event
        same = have.get("data") == want["data"]
        same = same and have["metadata"].get("ownerReferences") == want["metadata"]["ownerReferences"]
        if not same:
            have["data"] = want["data"]
            have["metadata"]["ownerReferences"] = want["metadata"]["ownerReferences"]
            self.client.call("PUT", f"{secrets}/{name}", have)


def secret_for(owner):
    namespace, name = key_of(owner)
    value = owner["spec"].get("value", "")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "ownerReferences": [{
                "apiVersion": f"{GROUP}/v1",
                "kind": "VaultSecret",
                "name": name,
                "uid": owner["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }],
        },
        "type": "Opaque",
        "data": {"value": base64.b64encode(value.encode()).decode()},
    }


def main():
    twin = repaired if "--repaired" in sys.argv[1:] else bug
    client = Client(os.environ["KUBECONFIG"])
    Loop(client, VAULT_SECRETS, twin.watched(VAULT_SECRETS, SECRETS), Controller(client).reconcile).run()


if __name__ == "__main__":
    main()
