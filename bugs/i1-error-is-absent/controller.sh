#!/usr/bin/env bash
# Class I1: a missing response is mistaken for the response that the object does not exist.
#
# A Share copies a ConfigMap. When the ConfigMap is deleted, so is the copy. The script
# needs bash, and kubectl or the program named by KUBECTL. It finds the cluster through
# KUBECONFIG.
#
#	controller.sh [--repaired]
set -u -o pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
kubectl() { command ${KUBECTL:-kubectl} --cache-dir "$cache" "$@"; }

if [ "${1-}" = --repaired ]; then . "$here/repaired.sh"; else . "$here/bug.sh"; fi

# follow prints a line whenever an object of a kind has changed, and whenever it may have
# missed a change. It ends when the script ends.
follow() {
	while kill -0 $$ 2>/dev/null; do
		kubectl get "$1" --all-namespaces --watch --output name 2>/dev/null
		echo again
		sleep 0.2
	done
}

# copy applies the copy. If the copy is unchanged, nothing is written.
copy() { # namespace, share, uid, value
	kubectl apply --server-side --force-conflicts --field-manager share --validate=false --filename - >/dev/null <<-END
	{"apiVersion": "v1", "kind": "ConfigMap",
	 "metadata": {"namespace": "$1", "name": "$2-copy", "ownerReferences": [
	   {"apiVersion": "bugs.koboshi.dev/v1", "kind": "Share", "name": "$2", "uid": "$3",
	    "controller": true, "blockOwnerDeletion": true}]},
	 "data": {"value": "$4"}}
	END
}

uncopy() { # namespace, share
	kubectl delete configmap "$2-copy" --namespace "$1" --ignore-not-found --wait=false >/dev/null
}

report() { # namespace, share, current phase, desired phase
	[ "$3" = "$4" ] && return
	kubectl patch shares "$2" --namespace "$1" --subresource status --type merge --patch "{\"status\": {\"phase\": \"$4\"}}" >/dev/null
}

reconcile() {
	local shares namespace name uid source phase
	shares=$(kubectl get shares --all-namespaces --output jsonpath='{range .items[*]}{.metadata.namespace} {.metadata.name} {.metadata.uid} {.spec.source} {.metadata.deletionTimestamp}/{.status.phase}{"\n"}{end}') || return
	while read -r namespace name uid source phase; do
		case $phase in
		"") ;;
		/*) share "$namespace" "$name" "$uid" "$source" "${phase#/}" || return ;;
		esac # the garbage collector handles Shares with a deletion timestamp
	done <<<"$shares"
}

{ follow shares & follow configmaps & wait; } | while read -r _; do
	while read -r -t 0.01 _; do :; done # skip the other lines; one reconcile covers all changes so far
	until reconcile; do sleep 0.1; done
done
