"""Answers as much of Vault's API as kubernetes-external-secrets and vault-secrets-operator ask
for: the state of the seal, logins and tokens, and two versions of key-value secrets. Every
login and every token is accepted."""

import http.server
import json
import os

HOUR = 3600


def version_2(number, **values):
    return {"data": values, "metadata": {"version": number, "created_time": f"2026-01-0{number}T00:00:00Z"}}


SECRETS = {
    "kvv1/shop": {"username": "old", "password": "plain-password"},
    "kvv2/data/shop": version_2(1, username="web", password="first-password"),
    "kvv2/data/shop-next": version_2(2, username="web", password="second-password", extra="third-value"),
}
AUTH = {
    "client_token": "token-of-the-test", "accessor": "accessor-of-the-test", "entity_id": "entity-of-the-test",
    "policies": ["default"], "token_policies": ["default"], "token_type": "service", "orphan": True,
    "lease_duration": 10 * HOUR, "renewable": True,
}
TOKEN = {"id": AUTH["client_token"], "accessor": AUTH["accessor"], "ttl": 10 * HOUR, "renewable": True}
SEAL = {
    "type": "shamir", "initialized": True, "sealed": False, "t": 1, "n": 1, "progress": 0,
    "version": "1.20.0", "cluster_name": "test", "cluster_id": "test",
}


class Vault(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, code, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def resource(self):
        return self.path.split("?")[0].strip("/").removeprefix("v1/").strip("/")

    def do_GET(self):
        path = self.resource()
        if path in ("sys/seal-status", "sys/health"):
            self.answer(200, SEAL)
        elif path == "auth/token/lookup-self":
            self.answer(200, {"data": TOKEN})
        elif path in SECRETS:
            self.answer(200, {"request_id": "1", "lease_id": "", "renewable": False, "lease_duration": 0, "data": SECRETS[path]})
        else:
            self.answer(404, {"errors": []})

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.resource()
        if path.startswith("auth/") and path.endswith("/login") or path == "auth/token/renew-self":
            self.answer(200, {"request_id": "1", "auth": AUTH})
        elif path == "auth/token/revoke-self":
            self.answer(204)
        else:
            self.answer(404, {"errors": []})

    do_PUT = do_POST

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Vault).serve_forever()
