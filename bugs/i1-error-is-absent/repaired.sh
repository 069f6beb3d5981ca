# An error is an error, and is tried again; only the API server's word that there is
# no source is a reason to delete.
share() { # namespace, name, uid, source, phase
	local found
	found=$(kubectl get configmap "$4" --namespace "$1" --ignore-not-found --output jsonpath='found{.data.value}') || return
	if [ -n "$found" ]; then
		copy "$1" "$2" "$3" "${found#found}" && report "$1" "$2" "$5" Shared
	else
		uncopy "$1" "$2" && report "$1" "$2" "$5" Missing
	fi
}
