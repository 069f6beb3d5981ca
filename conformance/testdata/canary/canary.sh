#!/bin/sh
# Does the same as conformance/canary. The variable KOBOSHI names the koboshi binary, which
# contains kubectl.
how=$1 theirs=$2
case $how in
home) set -- --kubeconfig "$HOME/.kube/config" ;;
in-cluster)
  account=/var/run/secrets/kubernetes.io/serviceaccount
  cat >config <<END
{"clusters": [{"name": "c", "cluster": {"server": "https://$KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT", "certificate-authority": "$account/ca.crt"}}],
 "users": [{"name": "u", "user": {"tokenFile": "$account/token"}}],
 "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "current-context": "c"}
END
  set -- --kubeconfig config
  ;;
esac
reached=$("$KOBOSHI" kubectl "$@" create configmap canary --namespace default 2>&1 >/dev/null) && reached=yes

leaked=$(env | grep canary-secret | cut -d= -f1)
for folder in ~ "$XDG_CONFIG_HOME" "$theirs"; do
  for name in .aws/credentials .kube/config gcloud/key.json .config/gcloud/key.json; do
    if grep -qs canary-secret "$folder/$name"; then leaked="$leaked $folder/$name"; fi
  done
done
echo "reached=$reached leaked="$leaked >>seen
exec "$KOBOSHI" kubectl "$@" get configmaps --namespace default --watch
