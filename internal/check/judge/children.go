package judge

import (
	"maps"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// Children returns the canonical names of the objects of some kinds that were created together with the
// resource. A generated name, which differs between runs, cannot be taken beforehand, so it is left out.
func (r *Reference) Children(isWanted func(kind string) bool) (names []string) {
	for _, s := range r.Steps {
		if s.Name != scenario.CreateStep {
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(s.Creates)) {
			kind, name, _ := strings.Cut(key, " ")
			if isWanted(kind) && len(s.World.Objects[key]) == 1 && !strings.Contains(name, "*") && !slices.Contains(ofKubernetes, name[strings.LastIndexByte(name, '/')+1:]) {
				names = append(names, key)
			}
		}
	}
	return names
}

// ofKubernetes lists the names of objects that Kubernetes makes in each namespace.
var ofKubernetes = []string{"kube-root-ca.crt", "default"}

// HasPods reports whether there was a Pod after a step.
func (r *Reference) HasPods() bool {
	for _, s := range r.Steps {
		for key := range s.World.Objects {
			if strings.HasPrefix(key, "Pod ") {
				return true
			}
		}
	}
	return false
}
