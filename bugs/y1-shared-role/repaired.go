package y1

// byNamespaceAndName names a role after the namespace and the name of its guard.
//
// RIGHT: no namespace contains a dot, so no other guard has the same role.
func byNamespaceAndName(guard *Guard) string { return guard.Namespace + "." + guard.Name + "-guard" }
