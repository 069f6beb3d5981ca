#!/bin/sh
# Generates everything into a temporary folder and compares it with what is
# committed. Nothing in the checkout changes.
set -eu
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
gen="go tool -modfile=tools/go.mod controller-gen"
$gen object paths=./api/... output:object:dir="$out"
$gen crd paths=./api/... output:crd:dir="$out/crd"
$gen rbac:roleName=manager-role paths=./internal/... output:rbac:dir="$out/rbac"
status=0
diff -u api/v1alpha1/zz_generated.deepcopy.go "$out/zz_generated.deepcopy.go" || status=1
diff -ru config/crd/bases "$out/crd" || status=1
diff -u config/rbac/role.yaml "$out/rbac/role.yaml" || status=1
if [ "$status" -ne 0 ]; then
	echo "generated files are out of date: run make generate manifests" >&2
fi
exit "$status"
