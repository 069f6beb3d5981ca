#!/usr/bin/env bash
# Decides what to install: a release, or the source code of this action. The runner has the whole
# repository, because it downloads a repository and not only the folder of the action.
set -euo pipefail
# shellcheck source=actions/setup/functions.sh
. "$GITHUB_ACTION_PATH/functions.sh"

case "$(uname -s)" in
  Linux) os=linux ;;
  Darwin) os=darwin ;;
  *) fail "koboshi runs on Linux and macOS, not on $(uname -s); choose another runner" ;;
esac
case "$(uname -m)" in
  x86_64 | amd64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) fail "koboshi runs on amd64 and arm64, not on $(uname -m); choose another runner" ;;
esac

top=$(cd "$GITHUB_ACTION_PATH/../.." && pwd)
version=${VERSION:-$(cat "$GITHUB_ACTION_PATH/version")}
if [ "$version" = source ]; then
  kind=source
  # The name of a branch does not tell its content, so the key is a hash of what is compiled.
  name=source-$(cd "$top" && find go.mod go.sum cmd internal -type f | LC_ALL=C sort | while IFS= read -r file; do
    sum "$file"
  done | sum - | cut -c 1-32)
elif [[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]]; then
  kind=release name=$version
else
  fail "version \"$version\" is neither \"source\" nor a version such as v1.2.0"
fi

{
  echo "kind=$kind"
  echo "version=$version"
  echo "platform=${os}_$arch"
  echo "key=koboshi-$os-$arch-$name"
  echo "folder=$RUNNER_TEMP/koboshi-$name"
  echo "go-mod=$top/go.mod"
} >>"$GITHUB_OUTPUT"
