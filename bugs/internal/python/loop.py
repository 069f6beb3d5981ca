"""Calls a function for every resource that may need work, and again after failures."""

import http.client
import queue
import sys
import threading
import time

from api import ApiError

# Errors of a request that may succeed the next time.
PASSING = (ApiError, OSError, http.client.HTTPException, ValueError)


def log(*words):
    print(*words, file=sys.stderr, flush=True)


def key_of(obj):
    return obj["metadata"]["namespace"], obj["metadata"]["name"]


class Loop:
    """Reconciles the resources listed at path. watched holds pairs of a path to watch and
    a function that returns the keys of the resources that an object there concerns."""

    def __init__(self, client, path, watched, reconcile):
        self.client = client
        self.path = path
        self.watched = watched
        self.reconcile = reconcile
        self.due = queue.Queue()

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
                delay = max(delay, getattr(err, "retry_after", 0))
                log("reconciling", "/".join(key), "failed:", err)
                threading.Timer(delay, self.due.put, [key]).start()

    def follow(self, path, owners):
        """Lists and watches forever."""
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
        for obj in self.client.call("GET", self.path)["items"]:
            self.due.put(key_of(obj))
