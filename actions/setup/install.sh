#!/usr/bin/env bash
# Installs what plan.sh has decided, unless the cache had it, and adds it to the PATH.
set -euo pipefail
# shellcheck source=actions/setup/functions.sh
. "$GITHUB_ACTION_PATH/functions.sh"

# download FILE saves a file of the release in the current folder.
download() {
  curl --fail --location --silent --show-error --retry 3 --output "$1" "$RELEASES/$VERSION/$1"
}

from_release() {
  archive=koboshi_${VERSION#v}_$PLATFORM.tar.gz
  work=$(mktemp -d)
  cd "$work"
  download checksums.txt || fail "release $VERSION was not found at $RELEASES; check the input version"
  download "$archive" || fail "release $VERSION has no $archive"
  want=$(awk -v name="$archive" '$2 == name {print $1}' checksums.txt)
  got=$(sum "$archive" | cut -d ' ' -f 1)
  [ -n "$want" ] || fail "checksums.txt of $VERSION does not list $archive"
  [ "$want" = "$got" ] || fail "$archive has the SHA-256 $got, but checksums.txt says $want; it is damaged, or was replaced"
  tar -xzf "$archive" koboshi
  mv koboshi "$FOLDER/koboshi"
}

from_source() {
  cd "$GITHUB_ACTION_PATH/../.."
  CGO_ENABLED=0 GOFLAGS=-trimpath go build -ldflags="-s -w" -o "$FOLDER/koboshi" ./cmd/koboshi
}

mkdir -p "$FOLDER"
if [ ! -x "$FOLDER/koboshi" ]; then
  # In a subshell, so that the functions may change the folder.
  (if [ "$KIND" = release ]; then from_release; else from_source; fi)
fi

version=$("$FOLDER/koboshi" version)
echo "$version"
echo "$FOLDER" >>"$GITHUB_PATH"
{
  echo "version=$version"
  echo "path=$FOLDER/koboshi"
} >>"$GITHUB_OUTPUT"
