#!/usr/bin/env bash
# Writes the report as a comment on the pull request, or replaces the comment of an earlier run. A token
# without the right to do so, as in a pull request from a fork, leads to a warning only.
set -euo pipefail

work=$(mktemp -d)
comments=/repos/$GITHUB_REPOSITORY/issues

# warn ends the step with a warning.
warn() {
  echo "::warning title=koboshi check::The comment was not written: $1. The report is in the summary of the run."
  exit 0
}

for tool in curl jq; do
  command -v "$tool" >/dev/null || warn "$tool is not installed"
done

# api METHOD PATH [FILE] calls GitHub, with a file as the body, and saves the answer in $work/answer. The
# token is not among the arguments of curl, which other programs could see.
api() {
  local body=()
  [ $# -lt 3 ] || body=(--data-binary "@$3")
  status=$(printf 'header = "Authorization: Bearer %s"\n' "$TOKEN" | curl --config - --silent --show-error --max-time 30 \
    --request "$1" --header 'Accept: application/vnd.github+json' --header 'X-GitHub-Api-Version: 2022-11-28' \
    ${body[@]+"${body[@]}"} --output "$work/answer" --write-out '%{http_code}' "$GITHUB_API_URL$2") || warn "GitHub does not answer"
  case "$status" in
    2*) ;;
    403 | 404) warn "the token may not (HTTP $status); the job needs the permission pull-requests: write, which pull requests from forks do not get" ;;
    *) warn "GitHub answered with HTTP $status" ;;
  esac
}

# find_comment sets id to the comment of an earlier run. Anybody can write the marker, so only a comment
# by a bot counts.
find_comment() {
  local page=1
  while :; do
    api GET "$comments/$PULL_REQUEST/comments?per_page=100&page=$page"
    id=$(jq -r --arg marker "$marker" '[.[] | select(.user.type == "Bot" and (.body // "" | startswith($marker)))] | first | .id // empty' "$work/answer") &&
      count=$(jq length "$work/answer") || warn "GitHub's answer is not a list of comments"
    if [ -n "$id" ] || [ "$count" -lt 100 ]; then
      return
    fi
    page=$((page + 1))
  done
}

marker=$(head -n 1 "$COMMENT")
jq -n --rawfile body "$COMMENT" '{body: $body}' >"$work/body"
find_comment
if [ -n "$id" ]; then
  api PATCH "$comments/comments/$id" "$work/body"
else
  api POST "$comments/$PULL_REQUEST/comments" "$work/body"
fi
echo "The comment on pull request $PULL_REQUEST was written."
