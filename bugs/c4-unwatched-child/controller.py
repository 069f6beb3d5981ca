"""Class C4: the controller does not watch an object that it depends on.

For each VaultSecret there is one Secret. It needs only Python and KUBECONFIG:

    python3 controller.py [--repaired]
"""

import base64
import http.client
import os
import queue
import sys
import threading
import time

import bug
import repaired
from api import ApiError, Client

GROUP = "bugs.koboshi.dev"
VAULT_SECRETS = f"/apis/{GROUP}/v1/vaultsecrets"
SECRETS = "/api/v1/secrets"

# Errors of a request that may succeed the next time.
PASSING = (ApiError, OSError, http.client.HTTPException, ValueError)


def log(*words):
    print(*words, file=sys.stderr, flush=True)


class Controller:
    def __init__(self, client, watched):
        self.client = client
        self.watched = watched
        self.due = queue.Queue()

    def follow(self, path, owners):
        """Lists and watches forever; owners returns the keys that an object concerns."""
        while True:
            try:
                found = self.client.call("GET", path)
                self.all_are_due()
                for _, obj in self.client.events(path, found["metadata"]["resourceVersion"]):
                    for key in owners(obj):
                        self.due.put(key)
            except PASSING as err:
                log("watching", path, "ended:", err)
            time.sleep(0.1)

    def all_are_due(self):
        for obj in self.client.call("GET", VAULT_SECRETS)["items"]:
            self.due.put(key_of(obj))

    def run(self):
        for path, owners in self.watched:
            threading.Thread(target=self.follow, args=(path, owners), daemon=True).start()
        delays = {}
        while True:
            key = self.due.get()
            try:
                self.reconcile(*key)
                delays.pop(key, None)
            except PASSING as err:
                delay = delays[key] = min(2 * delays.get(key, 0.01), 2)
                log("reconciling", "/".join(key), "failed:", err)
                threading.Timer(delay, self.due.put, [key]).start()

    def reconcile(self, namespace, name):
        owner_path = f"/apis/{GROUP}/v1/namespaces/{namespace}/vaultsecrets/{name}"
        owner = self.get(owner_path)
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
        have = self.get(f"{secrets}/{name}")
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

    def get(self, path):
        try:
            return self.client.call("GET", path)
        except ApiError as err:
            if err.code == 404:
                return None
            raise


def key_of(obj):
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


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
    Controller(Client(os.environ["KUBECONFIG"]), twin.watched(VAULT_SECRETS, SECRETS)).run()


if __name__ == "__main__":
    main()
