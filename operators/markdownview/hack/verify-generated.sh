#!/bin/sh
# Generates everything into a temporary folder and compares it with what is
# committed. Nothing in the checkout changes.
set -eu
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
gen="go tool -modfile=tools/go.mod controller-gen"
status=0
$gen object paths=./api/v1 output:object:dir="$out/api"
diff -u api/v1/zz_generated.deepcopy.go "$out/api/zz_generated.deepcopy.go" || status=1
$gen crd paths=./api/... output:crd:dir="$out/crd"
$gen rbac:roleName=manager-role paths=./internal/controller output:rbac:dir="$out/rbac"
$gen webhook paths=./internal/webhook/... output:webhook:dir="$out/webhook"
diff -ru config/crd/bases "$out/crd" || status=1
diff -u config/rbac/role.yaml "$out/rbac/role.yaml" || status=1
diff -u config/webhook/manifests.yaml "$out/webhook/manifests.yaml" || status=1
hack/chart-files.sh "$out/chart"
diff -ru charts/markdownview/files "$out/chart" || status=1
if [ "$status" -ne 0 ]; then
	echo "generated files are out of date: run make generate manifests" >&2
fi
exit "$status"
