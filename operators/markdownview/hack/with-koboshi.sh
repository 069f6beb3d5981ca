#!/bin/sh
# Runs a command against a fresh control plane, and always stops that plane:
#
#   hack/with-koboshi.sh KOBOSHI COMMAND [ARG...]
#
# The command finds the plane through the variables USE_EXISTING_CLUSTER and KUBECONFIG,
# as envtest does.
set -eu

koboshi=$1
shift
[ -x "$koboshi" ] || {
	echo "no koboshi at $koboshi: run make in the root of the repository, or set KOBOSHI" >&2
	exit 2
}

dir=$(mktemp -d)
plane=
stop() {
	if [ -n "$plane" ]; then
		kill "$plane" 2>/dev/null || true
		wait "$plane" 2>/dev/null || true
		plane=
	fi
	rm -rf "$dir"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

"$koboshi" up --profile "${KOBOSHI_PROFILE:-api}" --ephemeral --die-with-parent \
	--ready-file "$dir/ready" --kubeconfig "$dir/kubeconfig" >"$dir/log" 2>&1 &
plane=$!

tenths=0
while [ ! -e "$dir/ready" ]; do
	if ! kill -0 "$plane" 2>/dev/null || [ "$tenths" -ge 600 ]; then
		echo "koboshi did not become ready; its output:" >&2
		cat "$dir/log" >&2
		exit 1
	fi
	sleep 0.1
	tenths=$((tenths + 1))
done

USE_EXISTING_CLUSTER=true KUBECONFIG="$dir/kubeconfig" "$@"
