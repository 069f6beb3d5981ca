package e2

import "slices"

// sorted returns the same list as unsorted does, but in sorted order.
func sorted(zones map[string]map[string]bool) []string {
	ready := unsorted(zones)
	slices.Sort(ready)
	return ready
}
