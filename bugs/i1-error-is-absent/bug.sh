# The bug of red-hat-storage/ocs-operator#4056: if the source cannot be read for any
# reason, it is treated as gone. Even a short outage of the API server causes the copy to
# be deleted.
share() { # namespace, name, uid, source, phase
	local value
	if value=$(kubectl get configmap "$4" --namespace "$1" --output jsonpath='{.data.value}' 2>/dev/null); then
		copy "$1" "$2" "$3" "$value" && report "$1" "$2" "$5" Shared
	else
		uncopy "$1" "$2" && report "$1" "$2" "$5" Missing
	fi
}
