package e2

// unsorted has the bug of RedHatInsights/clowder#148. The lists in the status are built
// from maps, which have no order, so the status is different each time.
func unsorted(zones map[string]map[string]bool) []string {
	var ready []string
	for service := range zones {
		for zone := range zones[service] {
			ready = append(ready, service+"/"+zone)
		}
	}
	return ready
}
