#!/usr/bin/env bash
# Runs `koboshi check` on operators that others wrote, one check at a time:
#
#   run.sh KOBOSHI CLONES OUTDIR NAME...
#
# KOBOSHI is the built program, CLONES the folder with the clones that README.md lists, and
# NAME the folder of a clone, or one of mariadb-operator-plain and rollouts-release. For each
# NAME, OUTDIR gets
#
#   NAME.log        the output, with the seconds since the start before each line
#   NAME.json       the report, also as NAME.html
#   NAME.findings/  the findings, for koboshi check replay
#   NAME.done       the exit code and the seconds; a NAME that has this file is skipped
#   NAME.inputs/    files that were made from files of other projects
#
# So an interrupted run continues with the same command. The variable EXTRA may hold more
# flags for every check. sum.py prints the results.
set -euo pipefail

if [ $# -lt 4 ]; then
  echo "usage: $0 KOBOSHI CLONES OUTDIR NAME..." >&2
  exit 2
fi
inputs=$(cd "$(dirname "$0")" && pwd)/inputs
koboshi=$(realpath "$1")
clones=$(realpath "$2")
mkdir -p "$3"
out=$(realpath "$3")
shift 3
read -ra extra <<<"${EXTRA:-}"

# All checks build the operators in the same way, whatever the environment is.
export CGO_ENABLED=0

# arguments sets dir, budget, flags and command for the name $1. Inputs that are taken from
# other projects are made in the folder $made.
arguments() {
  dir=$1 budget=4m flags=() command=()
  export GOFLAGS=-trimpath
  made=$out/$1.inputs
  rm -rf "$made"
  case $1 in
  cass-operator) flags=(--kustomization config/deployments/cluster) ;;
  external-secrets)
    budget=5m
    fake_store
    export GOFLAGS="-trimpath -tags=fake" # the provider of the samples is built only with this tag
    flags=(--helm deploy/charts/external-secrets --crds config/crds/bases --samples "$made")
    ;;
  kube-green | vault-secrets-operator) flags=(--scenario "$inputs/$1/scenarios.yaml") ;;
  kubernetes-external-secrets)
    flags=(--helm charts/kubernetes-external-secrets --scenario "$inputs/$1/scenario.yaml" --env NODE_ENV=production)
    command=(-- node bin/daemon.js)
    ;;
  kustomize-controller)
    source_controller
    flags=(--with-crds "$made/source-controller.crds.yaml" --given "$made/source-controller.deployment.yaml")
    ;;
  mariadb-operator)
    flags=(--with-crds "$clones/cert-manager-1.20.2/deploy/crds/cert-manager.io_certificates.yaml"
      --with-crds "$clones/prometheus-operator-0.89.0/example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml")
    ;;
  mariadb-operator-plain) dir=mariadb-operator ;;
  node-feature-discovery)
    flags=(--main cmd/nfd-master --helm deployment/helm/node-feature-discovery --samples "$inputs/$1/samples")
    ;;
  rollouts)
    rollout_samples
    webhook_secret
    flags=(--samples "$made/samples" --given "$made/webhook-certs.yaml" --webhook-port 9876)
    ;;
  rollouts-release)
    dir=rollouts
    webhook_secret
    flags=(--scenario "$inputs/$1/scenario.yaml" --given "$made/webhook-certs.yaml" --webhook-port 9876)
    ;;
  cluster-operator | leader-worker-set | namespace-configuration-operator) budget=5m ;;
  grafana-operator | keda | notification-controller | spark-operator) ;;
  cert-manager | kubernetes-replicator | mpi-operator | RemoteResource)
    echo "$1: its samples or its scenario were not kept; see README.md" >&2
    exit 2
    ;;
  *)
    echo "$1: not an operator of the field test; README.md lists their names" >&2
    exit 2
    ;;
  esac
  if [ ! -d "$clones/$dir" ]; then
    echo "$1: there is no folder $clones/$dir; clone it as README.md shows" >&2
    exit 2
  fi
}

# fake_store makes the samples for external-secrets: two snippets of its documentation, with
# a template and two policies.
fake_store() {
  local snippets=$clones/external-secrets/docs/snippets
  mkdir -p "$made"
  cp "$snippets/fake-provider-store.yaml" "$made/store.yaml"
  sed -e '/^  name: example$/a\  namespace: default' \
    -e "/^    name: secret-to-be-created\$/r $inputs/external-secrets/target.yaml" \
    "$snippets/fake-provider-es.yaml" >"$made/externalsecret.yaml"
}

# source_controller makes the two files of flux' source-controller that the kustomization of
# kustomize-controller downloads.
source_controller() {
  local config=$clones/source-controller-1.9.0/config
  mkdir -p "$made"
  cat "$config"/crd/bases/*.yaml >"$made/source-controller.crds.yaml"
  {
    cat "$config/manager/service.yaml"
    echo ---
    sed 's|image: fluxcd/source-controller$|&:v1.9.0|' "$config/manager/deployment.yaml"
  } >"$made/source-controller.deployment.yaml"
}

# rollout_samples makes the samples for Kruise Rollouts: a Deployment and a Rollout of its
# end-to-end tests, without the routing of requests, which needs an ingress controller.
rollout_samples() {
  local data=$clones/rollouts/test/e2e/test_data/rollout
  mkdir -p "$made/samples"
  sed '/- name: POD_NAME$/,/status.podIP$/d' "$data/deployment.yaml" >"$made/samples/deployment.yaml"
  sed -e '/- traffic: 20%$/{N;s/traffic.*replicas/replicas/}' -e '/trafficRoutings:/,$d' \
    "$data/rollout_v1beta1_partition_base.yaml" >"$made/samples/rollout.yaml"
}

webhook_secret() {
  mkdir -p "$made"
  (umask 077 && "$inputs/rollouts/webhook-certs.sh" >"$made/webhook-certs.yaml")
}

# stamp copies lines, and adds the seconds since the start.
stamp() {
  local line start=$SECONDS
  while IFS= read -r line || [ -n "$line" ]; do
    printf '%6d %s\n' $((SECONDS - start)) "$line"
  done
}

# check runs one check in the folder of the clone.
check() {
  local name=$1 start=$SECONDS code=0
  rm -rf "$out/$name.findings" "$out/$name.findings.journal" "$out/$name".{json,html}
  echo "$(date +%T) $name"
  cd "$clones/$dir"
  # The check must not inherit the lock, because a process that it left behind would keep it.
  "$koboshi" check --budget "$budget" --seed 1 \
    --findings "$out/$name.findings" -o json="$out/$name.json" -o html="$out/$name.html" \
    "${extra[@]}" "${flags[@]}" "${command[@]}" </dev/null 2>&1 9>&- | stamp >"$out/$name.log" || code=$?
  echo "$code $((SECONDS - start))" >"$out/$name.done"
  echo "$(date +%T) $name: exit code $code, $((SECONDS - start)) s"
}

# Checks that run at the same time make each other slow.
exec 9>"${TMPDIR:-/tmp}/koboshi-field-test.lock"
flock 9
# The check handles the signal itself, and ends; without the trap, the next one would begin.
trap 'exit 130' INT TERM

for name; do
  if [ -e "$out/$name.done" ]; then
    echo "$name: done before"
  else
    arguments "$name"
    check "$name"
  fi
done
