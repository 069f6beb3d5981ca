package e2

import "slices"

// sorted gives the list an order.
func sorted(zones map[string]map[string]bool) []string {
	ready := asItComes(zones)
	slices.Sort(ready)
	return ready
}
