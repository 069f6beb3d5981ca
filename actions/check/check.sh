#!/usr/bin/env bash
# Runs koboshi check, or merges the reports of its shards, and writes the summary of the job.
set -euo pipefail

# GitHub accepts comments of at most 65,536 characters. koboshi keeps its report below that, and this
# limit leaves room for what is added here.
most=64000

command -v koboshi >/dev/null || {
  echo "::error title=koboshi check::koboshi is not installed; add the step koboshi-dev/koboshi/actions/setup before this one"
  exit 1
}
folder=$(mktemp -d "$RUNNER_TEMP/koboshi-check.XXXXXX")

# read_lines sets the array read_lines to the lines of a text that are not empty.
read_lines() {
  read_lines=()
  local line
  while IFS= read -r line; do
    [ -z "$line" ] || read_lines+=("$line")
  done <<<"$1"
}

if [ -n "$REPORTS" ]; then
  command=(koboshi check report)
else
  command=(koboshi check)
  [ -z "$BUDGET" ] || command+=("--budget=$BUDGET")
  [ -z "$UPGRADE_FROM" ] || command+=("--upgrade-from=$UPGRADE_FROM")
  # All shards must have the same seed. The arguments below may give another one.
  [ -z "$SHARD" ] || command+=("--shard=$SHARD" "--seed=$GITHUB_RUN_ID")
fi
for form in json sarif html junit markdown; do
  command+=(-o "$form=$folder/check.$form")
done
read_lines "$ARGS"
command+=(${read_lines[@]+"${read_lines[@]}"})
read_lines "$REPORTS"
for pattern in ${read_lines[@]+"${read_lines[@]}"}; do
  while IFS= read -r file; do
    command+=("$file")
  done < <(compgen -G "$pattern" || echo "$pattern")
done

# Text that the controller prints must not act as a command of the runner.
stop=$(od -An -N 16 -t x1 /dev/urandom | tr -d ' \n')
echo "::stop-commands::$stop"
code=0
"${command[@]}" 2>&1 | tee "$folder/log.txt" || code=${PIPESTATUS[0]}
echo "::$stop::"
# Without a report, nothing has been checked, whatever the arguments were.
[ "$code" -ne 0 ] || [ -s "$folder/check.json" ] || code=2

# report prints the report, or what is known if there is none.
report() {
  if [ -s "$folder/check.markdown" ]; then
    # Whole lines, so that no character is cut in two.
    awk -v most="$most" '
      { size += length($0) + 1 }
      size > most { print "\nThe rest of this report was cut, because it is too long. The log of the check has the whole report."; exit }
      { print }' "$folder/check.markdown"
  else
    echo "**koboshi check** could not be done (exit code $code). The log of the check says why."
  fi
}

# The marker by which comment.sh finds the comment again. It has only characters that cannot end it.
marker="<!-- koboshi-check: $(printf %s "$NAME" | tr -c 'A-Za-z0-9._/' '_') -->"
{
  echo "$marker"
  report
  printf '\n<sub>[Log and reports](%s/%s/actions/runs/%s) of commit %s</sub>\n' "$GITHUB_SERVER_URL" "$GITHUB_REPOSITORY" "$GITHUB_RUN_ID" "$SHA"
} >"$folder/comment.md"
cat "$folder/comment.md" >>"$GITHUB_STEP_SUMMARY"

{
  echo "exit-code=$code"
  echo "folder=$folder"
  echo "comment=$folder/comment.md"
  for form in json sarif html junit; do
    [ ! -s "$folder/check.$form" ] || echo "$form=$folder/check.$form"
  done
} >>"$GITHUB_OUTPUT"
