"""Does the same as conformance/canary, with the standard library only."""

import base64
import json
import os
import ssl
import sys
import time
import urllib.request

watches = []
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def connection(how):
    if how == "home":
        config = json.loads(read(os.path.expanduser("~/.kube/config")))
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        return cluster["server"], authority, config["users"][0]["user"]["token"]
    server = "https://{KUBERNETES_SERVICE_HOST}:{KUBERNETES_SERVICE_PORT}".format(**os.environ)
    return server, read(ACCOUNT + "ca.crt"), read(ACCOUNT + "token")


def write(how):
    server, authority, token = connection(how)
    namespace = "default" if how == "home" else read(ACCOUNT + "namespace")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "canary"}}
    url = f"{server}/api/v1/namespaces/{namespace}/configmaps"
    headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json"}
    context = ssl.create_default_context(cadata=authority)
    watch = urllib.request.Request(url + "?watch=1", headers=headers)
    watches.append(urllib.request.urlopen(watch, context=context))
    request = urllib.request.Request(url, data=json.dumps(body).encode(), headers=headers)
    urllib.request.urlopen(request, context=context).close()


def leaks(theirs):
    for name, value in os.environ.items():
        if "canary-secret" in value:
            yield name
    for folder in (os.path.expanduser("~"), os.environ.get("XDG_CONFIG_HOME", "/"), theirs):
        for name in (".aws/credentials", ".kube/config", "gcloud/key.json", ".config/gcloud/key.json"):
            path = os.path.join(folder, name)
            if os.path.exists(path) and "canary-secret" in read(path):
                yield path


def main(how, theirs):
    reached = "yes"
    try:
        write(how)
    except Exception as error:
        reached = repr(error)
    with open("seen", "a", encoding="utf-8") as file:
        file.write(f"reached={reached} leaked={','.join(leaks(theirs))}\n")
    while True:
        time.sleep(1000)


main(*sys.argv[1:])
