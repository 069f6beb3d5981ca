"""Class Z2: a resource with an invalid spec cannot be deleted.

A Tank has two ConfigMaps, which stand for the members of a database. When the Tank is deleted, the
replica must be deleted before the primary. The program needs only Python and KUBECONFIG:

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
FINALIZER = f"{GROUP}/members-in-order"
TANKS = f"/apis/{GROUP}/v1/tanks"
CONFIG_MAPS = "/api/v1/configmaps"
MEMBERS = ("primary", "replica")


class Controller:
    """Reconciles Tanks. The function must_be_valid reports whether an invalid Tank is ignored."""

    def __init__(self, client, must_be_valid):
        self.client = client
        self.must_be_valid = must_be_valid

    def reconcile(self, namespace, name):
        path = f"/apis/{GROUP}/v1/namespaces/{namespace}/tanks/{name}"
        tank = self.client.get(path)
        if tank is None:
            return
        if "deletionTimestamp" not in tank["metadata"] and self.hold(path, tank):
            return  # the change of the Tank is an event
        if self.must_be_valid(tank) and "volume" not in tank["spec"]:
            self.report(path, tank, "spec.volume is required, so this Tank is invalid")
        elif "deletionTimestamp" in tank["metadata"]:
            self.release(path, tank)
        else:
            for role in MEMBERS:
                self.ensure(tank, role)
            self.report(path, tank, "")

    def hold(self, path, tank):
        """Adds the finalizer, and reports whether it was missing."""
        finalizers = tank["metadata"].setdefault("finalizers", [])
        if FINALIZER in finalizers:
            return False
        finalizers.append(FINALIZER)
        self.client.call("PUT", path, tank)
        return True

    def ensure(self, tank, role):
        want = member(tank, role)
        members = f"/api/v1/namespaces/{want['metadata']['namespace']}/configmaps"
        path = f"{members}/{want['metadata']['name']}"
        have = self.client.get(path)
        if have is None:
            self.client.call("POST", members, want)
            return
        if "deletionTimestamp" in have["metadata"]:
            return  # the deletion is an event
        same = have.get("data") == want["data"]
        same = same and have["metadata"].get("ownerReferences") == want["metadata"]["ownerReferences"]
        if not same:
            have["data"] = want["data"]
            have["metadata"]["ownerReferences"] = want["metadata"]["ownerReferences"]
            self.client.call("PUT", path, have)

    def release(self, path, tank):
        """Deletes the next member, or lets the Tank go if there is none."""
        if FINALIZER not in tank["metadata"].get("finalizers", []):
            return
        for role in reversed(MEMBERS):
            namespace, name = key_of(member(tank, role))
            have = self.client.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
            if have is None or not belongs(have, tank):
                continue
            if "deletionTimestamp" not in have["metadata"]:
                known = {key: have["metadata"][key] for key in ("uid", "resourceVersion")}
                self.client.call("DELETE", f"/api/v1/namespaces/{namespace}/configmaps/{name}", {"preconditions": known})
            return  # the deletion is an event
        tank["metadata"]["finalizers"].remove(FINALIZER)
        self.client.call("PUT", path, tank)

    def report(self, path, tank, problem):
        status = {"problem": problem} if problem else {"ready": True}
        if tank.get("status") != status:
            self.client.call("PUT", f"{path}/status", {**tank, "status": status})


def member(tank, role):
    namespace, name = key_of(tank)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "namespace": namespace,
            "name": f"{name}-{role}",
            "ownerReferences": [{
                "apiVersion": f"{GROUP}/v1",
                "kind": "Tank",
                "name": name,
                "uid": tank["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }],
        },
        "data": {"role": role, "volume": tank["spec"].get("volume", "")},
    }


def belongs(obj, tank):
    return any(ref["uid"] == tank["metadata"]["uid"] for ref in obj["metadata"].get("ownerReferences", []))


def the_tank(obj):
    return [key_of(obj)]


def its_tank(obj):
    """Returns the key of the Tank of a member, which the name of the member contains."""
    namespace, name = key_of(obj)
    tank, _, role = name.rpartition("-")
    return [(namespace, tank)] if role in MEMBERS else []


def main():
    twin = repaired if "--repaired" in sys.argv[1:] else bug
    client = Client(os.environ["KUBECONFIG"])
    watched = [(TANKS, the_tank), (CONFIG_MAPS, its_tank)]
    Loop(client, TANKS, watched, Controller(client, twin.must_be_valid).reconcile).run()


if __name__ == "__main__":
    main()
