#!/usr/bin/env bash
# Prints the Secret with the certificate of the operator's webhooks, and a new CA and new keys
# in it. The certificate is valid for the name of the Service, and for the loopback addresses
# on which koboshi check runs controllers: 127.80.LAB.INSTANCE. The operator keeps a
# certificate that is valid for the name for six more months.
set -euo pipefail
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

namespace=kruise-rollout
host=kruise-rollout-webhook-service.$namespace.svc
names=DNS:$host,DNS:localhost,IP:127.0.0.1
for lab in {1..200}; do
  names+=,IP:127.80.$lab.1,IP:127.80.$lab.2
done
cat >openssl.cnf <<END
[req]
distinguished_name = name
[name]
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, digitalSignature, keyEncipherment, keyCertSign
[server]
keyUsage = critical, digitalSignature, keyEncipherment
extendedKeyUsage = serverAuth
subjectAltName = $names
END

{
  openssl req -config openssl.cnf -extensions ca -x509 -newkey rsa:2048 -nodes -days 365 \
    -subj "/CN=CA of the field test" -keyout ca.key -out ca.crt
  openssl req -config openssl.cnf -newkey rsa:2048 -nodes -subj "/CN=$host" -keyout tls.key -out tls.csr
  openssl x509 -req -in tls.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 \
    -extfile openssl.cnf -extensions server -out tls.crt
} 2>openssl.log || {
  cat openssl.log >&2
  exit 1
}

encode() { openssl base64 -A -in "$1"; }
cat <<END
apiVersion: v1
kind: Secret
metadata:
  name: kruise-rollout-webhook-certs
  namespace: $namespace
data:
  ca-key.pem: $(encode ca.key)
  ca-cert.pem: $(encode ca.crt)
  key.pem: $(encode tls.key)
  cert.pem: $(encode tls.crt)
  tls.key: $(encode tls.key)
  tls.crt: $(encode tls.crt)
END
