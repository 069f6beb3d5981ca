package judge

import (
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// ownOf returns the objects that the controller writes itself although their kinds are usually
// maintained by the cluster: Nodes that the controller labels, and EndpointSlices,
// ControllerRevisions and APIServices that it makes. If the controller did not create an object,
// only the fields that it changed are its own.
func ownOf(runs []*evidence.Run) state.Own {
	own := state.Own{}
	var m *state.Mask
	for _, run := range runs {
		labels, by := m.Label(run.History), authors(run)
		created := map[string]bool{}
		for _, c := range run.History.Changes {
			if by[c.Revision] == nil || c.After == nil || !state.Bookkeeping(c.Ref, c.After) {
				continue
			}
			key := labels.Of(c.Ref)
			if created[key] = created[key] || c.Op == state.Created; created[key] {
				own[key] = nil
				continue
			}
			if paths, known := own[key]; known && paths == nil {
				continue // created in another run
			}
			for _, path := range c.Changed() {
				if !slices.ContainsFunc(own[key], func(other []string) bool { return slices.Equal(other, path) }) {
					own[key] = append(own[key], path)
				}
			}
		}
	}
	for key := range productLeases(runs) {
		own[key] = nil
	}
	return own
}
