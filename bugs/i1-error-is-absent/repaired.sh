# After an error, the controller tries again. It deletes the copy only if the API server
# answers that there is no source.
share() { # namespace, name, uid, source, phase
	local found
	found=$(kubectl get configmap "$4" --namespace "$1" --ignore-not-found --output jsonpath='found{.data.value}') || return
	if [ -n "$found" ]; then
		copy "$1" "$2" "$3" "${found#found}" && report "$1" "$2" "$5" Shared
	else
		uncopy "$1" "$2" && report "$1" "$2" "$5" Missing
	fi
}
