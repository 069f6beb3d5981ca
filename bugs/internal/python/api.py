"""A client of the Kubernetes API that needs only the standard library."""

import base64
import http.client
import json
import ssl
import tempfile
import urllib.parse


class ApiError(Exception):
    """A response that reports a failure; code is its HTTP status. A busy server states after
    how many seconds to retry; otherwise retry_after is 0."""

    def __init__(self, code, message, retry_after=0):
        super().__init__(f"{code}: {message}")
        self.code = code
        self.retry_after = retry_after


def _failure(resp):
    """Returns the error for an answer. The API server gives Retry-After in seconds."""
    after = resp.headers.get("Retry-After", "")
    message = resp.read().decode(errors="replace")[:200]
    return ApiError(resp.status, message, int(after) if after.isdigit() else 0)


def _named(entries, name):
    return next(e for e in entries if e["name"] == name)


class Client:
    """Communicates with the cluster of a kubeconfig, which must be written in JSON."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            config = json.load(f)
        context = _named(config["contexts"], config["current-context"])["context"]
        cluster = _named(config["clusters"], context["cluster"])["cluster"]
        user = _named(config["users"], context["user"])["user"]
        self.url = urllib.parse.urlsplit(cluster["server"])
        self.headers = {"Accept": "application/json"}
        if "token" in user:
            self.headers["Authorization"] = "Bearer " + user["token"]
        self.tls = self._tls(cluster, user) if self.url.scheme == "https" else None

    @staticmethod
    def _tls(cluster, user):
        ca = cluster.get("certificate-authority-data")
        tls = ssl.create_default_context(
            cafile=cluster.get("certificate-authority"),
            cadata=base64.b64decode(ca).decode() if ca else None,
        )
        if cluster.get("insecure-skip-tls-verify"):
            tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        if "client-certificate-data" in user:
            # The ssl module reads client certificates only from files.
            with tempfile.NamedTemporaryFile() as f:
                f.write(base64.b64decode(user["client-certificate-data"]) + b"\n")
                f.write(base64.b64decode(user["client-key-data"]))
                f.flush()
                tls.load_cert_chain(f.name)
        elif "client-certificate" in user:
            tls.load_cert_chain(user["client-certificate"], user["client-key"])
        return tls

    def _send(self, method, path, body, timeout):
        if self.tls:
            conn = http.client.HTTPSConnection(self.url.netloc, timeout=timeout, context=self.tls)
        else:
            conn = http.client.HTTPConnection(self.url.netloc, timeout=timeout)
        headers = dict(self.headers)
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(body)
        conn.request(method, self.url.path.rstrip("/") + path, body, headers)
        return conn, conn.getresponse()

    def call(self, method, path, body=None):
        """Sends one request and returns the object in the response."""
        conn, resp = self._send(method, path, body, timeout=30)
        try:
            if resp.status >= 300:
                raise _failure(resp)
            return json.loads(resp.read())
        finally:
            conn.close()

    def get(self, path):
        """Reads an object, and returns None if it does not exist."""
        try:
            return self.call("GET", path)
        except ApiError as err:
            if err.code == 404:
                return None
            raise

    def events(self, path, version):
        """Yields the type and object of each event after a resource version.

        It ends when the watch ends."""
        conn, resp = self._send("GET", f"{path}?watch=1&resourceVersion={version}", None, timeout=None)
        try:
            if resp.status >= 300:
                raise _failure(resp)
            for line in resp:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(event["object"].get("code", 0), event["object"].get("message", ""))
                yield event["type"], event["object"]
        finally:
            conn.close()
