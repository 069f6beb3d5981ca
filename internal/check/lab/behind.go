package lab

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/rest"
)

// mostBehind is the number of times that rest waits in vain for a controller to observe the current
// generation of an object. Some controllers never write the field again once it has a value.
const mostBehind = 3

// behind counts the objects whose current generation their controller has not observed yet. It returns 0
// in a run with a fault, which is compared with runs that have waited.
func (r *run) behind() int {
	if r.lesson != nil {
		return 0
	}
	n := 0
	for ref := range r.lab.store.find(rest.IsBehind) {
		if r.lab.inVain[ref.GroupKind] < mostBehind {
			n++
		}
	}
	return n
}

// vain notes, when the world is at rest, for which kinds rest has waited in vain.
func (r *run) vain() {
	if r.lesson != nil {
		return
	}
	kinds := map[schema.GroupKind]bool{}
	for ref := range r.lab.store.find(rest.IsBehind) {
		if !kinds[ref.GroupKind] {
			kinds[ref.GroupKind] = true
			r.lab.inVain[ref.GroupKind]++
		}
	}
}
