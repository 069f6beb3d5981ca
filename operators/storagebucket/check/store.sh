#!/bin/sh
# Runs bin/s3server for one run of koboshi check, on an empty store that is
# removed when the server stops. The key pair is the same as in the scenarios.
set -eu
dir=$(mktemp -d)
server=
stop() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || true
	rm -rf "$dir"
}
trap stop EXIT
trap 'exit 143' INT TERM
ROOT_ACCESS_KEY=check-key ROOT_SECRET_KEY=check-secret \
	../bin/s3server --dir "$dir/store" --listen "127.0.0.1:$PORT" --die-with-parent "$@" &
server=$!
wait "$server"
