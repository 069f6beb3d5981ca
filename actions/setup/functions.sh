# shellcheck shell=bash
# The functions that the scripts of this action share.

# fail ends the step with an error that is shown in the summary of the run.
fail() {
  echo "::error title=koboshi::$1"
  exit 1
}

# sum prints the SHA-256 of a file, and the name of the file. macOS has no sha256sum.
sum() {
  if command -v sha256sum >/dev/null; then sha256sum "$1"; else shasum -a 256 "$1"; fi
}
