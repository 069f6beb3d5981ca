#!/usr/bin/env bash
# Ends with the exit code of the check, after everything has been published.
set -euo pipefail

if [ "$UPLOAD" = failure ]; then
  echo "::warning title=koboshi check::The findings were not uploaded to code scanning. The job needs the permission security-events: write, and the repository needs code scanning. The report is in the summary of the run."
fi
case "$EXIT_CODE" in
  0) ;;
  1) echo "::error title=koboshi check::There are findings; see the summary of the run." ;;
  *) echo "::error title=koboshi check::The check could not be done (exit code $EXIT_CODE); see its log." ;;
esac
exit "$EXIT_CODE"
