package state

import (
	"slices"

	"github.com/koboshi-dev/koboshi/internal/request"
)

// IsOwnedLease reports whether an object is a Lease that another object owns. A Pod or a
// Node does not count: it is the holder of its Lease.
func IsOwnedLease(ref Ref, object Object) bool {
	return request.IsLeaseKind(ref.GroupKind) &&
		slices.ContainsFunc(object.Owners(), func(o Owner) bool { return o.Kind != "Pod" && o.Kind != "Node" })
}

// renewed lists the fields of a Lease's spec that its holder changes when it takes or renews
// the Lease.
var renewed = []string{"renewTime", "acquireTime", "leaseTransitions"}

// Renews reports whether a change of a Lease only takes or renews it for the same holder.
func (c Change) Renews() bool {
	if c.Before == nil || c.After == nil {
		return false
	}
	for _, path := range c.Changed() {
		if len(path) != 2 || path[0] != "spec" || !slices.Contains(renewed, path[1]) {
			return false
		}
	}
	return true
}
