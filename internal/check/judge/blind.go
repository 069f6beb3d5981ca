package judge

import (
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// blind returns the controller's own objects that cannot be compared after at least half of the
// steps in which they exist. blind returns nothing if such objects are fewer than half of the
// objects that the controller makes.
func (r *Reference) blind(runs []*evidence.Run) []string {
	if len(r.Mask.Objects) == 0 {
		return nil
	}
	exists := map[string]map[string]bool{} // the steps by object
	for _, run := range runs {
		labels, made := r.Mask.Label(run.History), map[string]bool{}
		by := authors(run)
		for _, c := range run.History.Changes {
			if c.Op == state.Created && by[c.Revision] != nil {
				made[labels.Of(c.Ref)] = true
			}
		}
		for _, s := range run.Steps {
			for ref, object := range run.History.At(s.Rested) {
				if key := labels.Of(ref); object != nil && made[key] {
					if exists[key] == nil {
						exists[key] = map[string]bool{}
					}
					exists[key][s.Name] = true
				}
			}
		}
	}
	var blind []string
	for key, steps := range exists {
		if slices.Contains(r.Mask.Objects, key) && 2*len(r.Mask.Scarce[key]) >= len(steps) {
			blind = append(blind, key)
		}
	}
	if 2*len(blind) < len(exists) {
		return nil
	}
	slices.Sort(blind)
	return blind
}
