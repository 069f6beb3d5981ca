#!/bin/sh
# Generates everything into a temporary folder and compares it with what is
# committed. Nothing in the checkout changes.
set -eu
cd "$(dirname "$0")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
gen="go tool -modfile=tools/go.mod controller-gen"
status=0
for committed in $(find api -name zz_generated.deepcopy.go); do
	package=$(dirname "$committed")
	$gen object paths="./$package" output:object:dir="$out/$package"
	diff -u "$committed" "$out/$committed" || status=1
done
$gen crd paths=./api/... output:crd:dir="$out/crd"
$gen rbac:roleName=manager-role paths=./internal/controller paths=./internal/refs paths=./internal/notify output:rbac:dir="$out/rbac"
diff -ru config/crd/bases "$out/crd" || status=1
diff -u config/rbac/role.yaml "$out/rbac/role.yaml" || status=1
if [ "$status" -ne 0 ]; then
	echo "generated files are out of date: run make generate manifests" >&2
fi
exit "$status"
