package judge

import (
	"maps"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// productLeases returns the Leases that the controller makes for its resources, such as a
// heartbeat for each custom resource, by canonical name. Any other Lease is an election or a
// lock, and its content depends on what happened before. A Lease is a product only if, in
// each run that has it,
//
//   - the controller creates it, with an owner that exists in this run,
//   - the controller does not delete it, and
//   - its holder stays the same.
func productLeases(runs []*evidence.Run) map[string]bool {
	products, other := map[string]bool{}, map[string]bool{}
	var m *state.Mask
	for _, run := range runs {
		labels, by, uids, gone := m.Label(run.History), leaseAuthors(run), uidsOf(run.History), deletedLeases(run)
		created := map[string]bool{}
		for _, c := range run.History.Changes {
			if !request.IsLeaseKind(c.Ref.GroupKind) {
				continue
			}
			key := labels.Of(c.Ref)
			created[key] = created[key] || c.Op == state.Created && by[c.Revision] != nil
			switch {
			case !created[key], c.Op == state.Deleted && (gone[c.Ref.Namespace+"/"+c.Ref.Name] || gone[c.Ref.Namespace+"/"]):
				other[key] = true
			case c.Op == state.Created:
				other[key] = other[key] || !state.IsOwnedLease(c.Ref, c.After) || !ownedBy(c.After, uids)
			case c.Op == state.Updated:
				other[key] = other[key] || holder(c.Ref, c.Before) != holder(c.Ref, c.After)
			}
		}
		maps.Copy(products, created)
	}
	maps.DeleteFunc(products, func(key string, created bool) bool { return !created || other[key] })
	return products
}

// leaseAuthors matches the controller's writes of Leases with the history.
func leaseAuthors(run *evidence.Run) map[int64]*trace.Entry {
	return authorsOf(run, func(e *trace.Entry) bool {
		return e.Call != nil && e.Instance != "" && request.IsLease(e.Call.Target) && request.IsWrite(e.Call)
	})
}

// deletedLeases returns the Leases that the controller itself deletes, as "namespace/name".
// The name is empty if the controller deletes several Leases at once.
func deletedLeases(run *evidence.Run) map[string]bool {
	gone := map[string]bool{}
	for i := range run.Entries {
		e := &run.Entries[i]
		if e.Call != nil && e.Instance != "" && request.IsLease(e.Call.Target) && (e.Call.Verb == "delete" || e.Call.Verb == "deletecollection") {
			gone[e.Call.Target.Namespace+"/"+e.Call.Target.Name] = true
		}
	}
	return gone
}

// uidsOf returns the UIDs of all objects in a history.
func uidsOf(h state.History) map[string]bool {
	uids := map[string]bool{}
	for _, object := range h.Baseline {
		uids[object.Metadata("uid")] = true
	}
	for _, c := range h.Changes {
		uids[c.After.Metadata("uid")] = true
	}
	delete(uids, "")
	return uids
}

// ownedBy reports whether an object with one of the UIDs owns an object.
func ownedBy(object state.Object, uids map[string]bool) bool {
	return slices.ContainsFunc(object.Owners(), func(o state.Owner) bool { return uids[o.UID] })
}
