package y1

// byName names a role after its guard.
//
// WRONG: guards of the same name in two namespaces have the same role, and the deletion of one of them
// deletes the role of both. In Kuadrant/authorino-operator#348 and
// open-telemetry/opentelemetry-operator#2862, the name of a ClusterRoleBinding also lacked the
// namespace.
func byName(guard *Guard) string { return guard.Name + "-guard" }
