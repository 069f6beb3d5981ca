package e2

import "slices"

// sorted returns the same list, sorted.
func sorted(zones map[string]map[string]bool) []string {
	ready := unsorted(zones)
	slices.Sort(ready)
	return ready
}
