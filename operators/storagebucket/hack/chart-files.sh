#!/bin/sh
# Copies the files that the Helm chart shares with config/ into the chart,
# because a chart cannot refer to files outside its folder. A test fails if the
# copies are out of date.
#
#   hack/chart-files.sh            copies into the chart
#   hack/chart-files.sh FOLDER     copies into a folder, for a comparison
set -eu
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
	set -- charts/storagebucket/files
	rm -rf "$1"
fi
mkdir -p "$1/crds" "$1/rbac"
cp config/crd/bases/*.yaml "$1/crds/"
cp config/rbac/role.yaml config/rbac/*_role.yaml "$1/rbac/"
cp config/prometheus/rules.yaml "$1/prometheus-rules.yaml"
cp config/grafana/storagebucket.json "$1/grafana-dashboard.json"
cp config/network-policy/manager.yaml "$1/network-policy.yaml"
cp config/network-policy/usage.yaml "$1/network-policy-usage.yaml"
cp config/usage/rbac.yaml "$1/usage-rbac.yaml"
cp config/usage/viewer_role.yaml "$1/usage-viewer-role.yaml"
cp config/usage/service.yaml "$1/usage-service.yaml"
