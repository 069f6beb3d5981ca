#!/bin/sh
# Copies the files that the Helm chart shares with config/ into the chart, because a chart
# cannot refer to files outside its folder. hack/verify-generated.sh reports outdated copies.
#
#   hack/chart-files.sh            into the chart
#   hack/chart-files.sh FOLDER     into a folder, for a comparison
set -eu
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
	set -- charts/markdownview/files
	rm -rf "$1"
fi
mkdir -p "$1/crds" "$1/rbac"
cp config/crd/bases/*.yaml "$1/crds/"
cp config/rbac/role.yaml config/rbac/*_role.yaml "$1/rbac/"
cp config/prometheus/rules.yaml "$1/prometheus-rules.yaml"
cp config/grafana/markdownview.json "$1/grafana-dashboard.json"
cp config/network-policy/manager.yaml "$1/network-policy.yaml"
kubectl kustomize config/webhook >"$1/webhooks.yaml"
