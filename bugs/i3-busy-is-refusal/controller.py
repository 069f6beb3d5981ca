"""Class I3: a response from a busy server is mistaken for a refusal.

Each Task has one ConfigMap, which stands for the Pod that runs the Task. A Task runs only
once: if its ConfigMap is refused, the Task has failed for good. The controller needs only
Python and KUBECONFIG:

    python3 controller.py [--repaired]
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "internal", "python"))

import bug
import repaired
from api import ApiError, Client
from loop import Loop, key_of, log

GROUP = "bugs.koboshi.dev"
TASKS = f"/apis/{GROUP}/v1/tasks"
CONFIG_MAPS = "/api/v1/configmaps"


class Controller:
    """Reconciles Tasks. The function passes reports whether an error status is temporary."""

    def __init__(self, client, passes):
        self.client = client
        self.passes = passes

    def reconcile(self, namespace, name):
        task = self.client.get(f"/apis/{GROUP}/v1/namespaces/{namespace}/tasks/{name}")
        if task is None or "deletionTimestamp" in task["metadata"]:
            return  # the garbage collector does the rest
        if task.get("status", {}).get("phase") == "Failed":
            return
        self.report(task, "Running" if self.ensure_worker(task) else "Failed")

    def ensure_worker(self, task):
        """Reports whether the Task has a worker. If not, the server has refused the worker."""
        namespace, name = key_of(task)
        workers = f"/api/v1/namespaces/{namespace}/configmaps"
        want = worker_for(task)
        have = self.client.get(f"{workers}/{name}")
        if have is None:
            return self.create(workers, want)
        if "deletionTimestamp" in have["metadata"]:
            return True  # the deletion is an event
        same = have.get("data") == want["data"]
        same = same and have["metadata"].get("ownerReferences") == want["metadata"]["ownerReferences"]
        if not same:
            have["data"] = want["data"]
            have["metadata"]["ownerReferences"] = want["metadata"]["ownerReferences"]
            self.client.call("PUT", f"{workers}/{name}", have)
        return True

    def create(self, workers, worker):
        try:
            self.client.call("POST", workers, worker)
        except ApiError as err:
            if self.passes(err.code):
                raise  # the loop tries again
            log("the worker", worker["metadata"]["name"], "was refused:", err)
            return False
        return True

    def report(self, task, phase):
        if task.get("status", {}).get("phase") == phase:
            return
        namespace, name = key_of(task)
        task["status"] = {"phase": phase}
        self.client.call("PUT", f"/apis/{GROUP}/v1/namespaces/{namespace}/tasks/{name}/status", task)


def worker_for(task):
    namespace, name = key_of(task)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "ownerReferences": [{
                "apiVersion": f"{GROUP}/v1",
                "kind": "Task",
                "name": name,
                "uid": task["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }],
        },
        "data": {task["spec"]["file"]: task["spec"].get("script", "")},
    }


def the_task(obj):
    """Returns the key of a Task, given the Task or its ConfigMap. Both have the same key."""
    return [key_of(obj)]


def main():
    twin = repaired if "--repaired" in sys.argv[1:] else bug
    client = Client(os.environ["KUBECONFIG"])
    watched = [(TASKS, the_task), (CONFIG_MAPS, the_task)]
    Loop(client, TASKS, watched, Controller(client, twin.passes).reconcile).run()


if __name__ == "__main__":
    main()
