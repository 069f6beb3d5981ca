package e2

// asItComes is the bug of RedHatInsights/clowder#148: the lists of the status come
// out of maps, which have no order, so that the status is never the same twice.
func asItComes(zones map[string]map[string]bool) []string {
	var ready []string
	for service := range zones {
		for zone := range zones[service] {
			ready = append(ready, service+"/"+zone)
		}
	}
	return ready
}
