"""Class W2: an object that several resources share keeps the entry of a deleted one.

One ConfigMap lists all Tenants with their quotas. The program needs only Python and KUBECONFIG:

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
TENANTS = f"/apis/{GROUP}/v1/tenants"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
DIRECTORY = ("default", "tenants")


class Directory(Loop):
    """Reconciles the directory, whatever has changed."""

    def all_are_due(self):
        self.due.put(DIRECTORY)


class Controller:
    """Keeps the directory. The function entries returns its entries, given the stored and the
    wanted ones."""

    def __init__(self, client, entries):
        self.client = client
        self.entries = entries

    def reconcile(self, namespace, name):
        found = self.client.call("GET", TENANTS)["items"]
        tenants = [t for t in found if "deletionTimestamp" not in t["metadata"]]
        wanted = {".".join(key_of(t)): str(t["spec"]["quota"]) for t in tenants}
        self.keep(namespace, name, wanted)
        for tenant in tenants:
            self.report(tenant)

    def keep(self, namespace, name, wanted):
        path = f"{CONFIG_MAPS}/{name}"
        have = self.client.get(path)
        if have is not None and "deletionTimestamp" in have["metadata"]:
            return  # the deletion is an event
        stored = (have or {}).get("data", {})
        data = self.entries(stored, wanted)
        if have is None and data:
            metadata = {"namespace": namespace, "name": name}
            self.client.call("POST", CONFIG_MAPS, {"metadata": metadata, "data": data})
        elif have is not None and not data:
            known = {key: have["metadata"][key] for key in ("uid", "resourceVersion")}
            self.client.call("DELETE", path, {"preconditions": known})
        elif have is not None and data != stored:
            self.client.call("PUT", path, {**have, "data": data})

    def report(self, tenant):
        if tenant.get("status", {}).get("listed"):
            return
        namespace, name = key_of(tenant)
        path = f"/apis/{GROUP}/v1/namespaces/{namespace}/tenants/{name}/status"
        self.client.call("PUT", path, {**tenant, "status": {"listed": True}})


def directory(_):
    return [DIRECTORY]


def main():
    twin = repaired if "--repaired" in sys.argv[1:] else bug
    client = Client(os.environ["KUBECONFIG"])
    watched = [(TENANTS, directory), (CONFIG_MAPS, directory)]
    Directory(client, TENANTS, watched, Controller(client, twin.entries).reconcile).run()


if __name__ == "__main__":
    main()
