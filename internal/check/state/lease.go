package state

import (
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/request"
)

// IsOwnedLease reports whether an object is a Lease that another object owns. An owner that is a
// Pod or a Node does not count, because it is the holder of the Lease.
func IsOwnedLease(ref Ref, object Object) bool {
	return request.IsLeaseKind(ref.GroupKind) &&
		slices.ContainsFunc(object.Owners(), func(o Owner) bool { return o.Kind != "Pod" && o.Kind != "Node" })
}

// Renews reports whether a change of a Lease only takes or renews it for the same holder. Such a
// change concerns no field that is compared.
func (c Change) Renews() bool {
	if c.Before == nil || c.After == nil {
		return false
	}
	for _, path := range c.Changed() {
		if ofKind["Lease.coordination.k8s.io"][strings.Join(path, ".")] != Ignore {
			return false
		}
	}
	return true
}
