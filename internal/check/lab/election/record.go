// Package election reads the Leases with which the instances of a controller elect a leader, learns
// from runs which Leases are elections, and releases them. Before Leases existed, client-go kept
// the record of an election in an annotation of a ConfigMap or an Endpoints object. Such a record
// counts as a Lease.
package election

import (
	"net/http"
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
)

// Lease is the content of a Lease.
type Lease struct {
	Holder            string
	Acquired, Renewed time.Time
	Duration          time.Duration
}

const (
	// defaultDuration applies to a Lease without a duration, as in client-go.
	defaultDuration = 15 * time.Second
	// longestTerm limits the wait until a Lease expires. longestTerm exceeds the Lease duration of
	// OpenShift's operators, 137 s. The limit is needed because a Lease that is not for leader
	// election may last longer.
	longestTerm = 4 * time.Minute
)

// Is reports whether an object is a Lease, or holds the kind of election record that client-go kept
// before Leases existed.
func Is(ref state.Ref, object state.Object) bool {
	_, ok := request.LeaseSpec(ref.GroupKind, object)
	return ok
}

// Read returns the content of a Lease.
func Read(ref state.Ref, object state.Object) Lease {
	spec, _ := request.LeaseSpec(ref.GroupKind, object)
	text := func(field string) string { s, _ := spec[field].(string); return s }
	at := func(field string) time.Time { t, _ := time.Parse(time.RFC3339Nano, text(field)); return t }
	l := Lease{Holder: text("holderIdentity"), Acquired: at("acquireTime"), Renewed: at("renewTime"), Duration: defaultDuration}
	if seconds, ok := spec["leaseDurationSeconds"].(int64); ok {
		l.Duration = time.Duration(seconds) * time.Second
	}
	return l
}

// Term returns how long a Lease may stay with a holder that is gone. client-go takes over a
// Lease once the Lease has not changed for leaseDurationSeconds. client-go checks the Lease only
// at intervals, so Term adds half of the duration.
func (l Lease) Term() time.Duration { return min(l.Duration*3/2+rest.UpTimeout, longestTerm) }

// Held returns the objects that are Leases with a holder. Leases of the baseline
// belong to the plane, so they are left out.
func Held(objects map[state.Ref]state.Object, baseline state.Snapshot) map[state.Ref]Lease {
	held := map[state.Ref]Lease{}
	for ref, object := range objects {
		if _, old := baseline[ref]; old || !Is(ref, object) {
			continue
		}
		if l := Read(ref, object); l.Holder != "" {
			held[ref] = l
		}
	}
	return held
}

// Longest returns the longest duration of a Lease that was held in a run.
func Longest(out *evidence.Run) (longest time.Duration) {
	for i := range out.History.Changes {
		if c := &out.History.Changes[i]; written(out, c) {
			if l := Read(c.Ref, c.After); l.Holder != "" {
				longest = max(longest, l.Duration)
			}
		}
	}
	return longest
}

// MustWait reports whether a restarted controller may have to wait for a Lease. The controller
// never has to wait for the Leases of the known elections, because these are released after a kill.
func MustWait(out *evidence.Run, known []string) bool {
	return slices.ContainsFunc(out.History.Changes, func(c state.Change) bool {
		return written(out, &c) && !slices.Contains(known, nameOf(c.Ref)) && Read(c.Ref, c.After).Holder != ""
	})
}

// written reports whether a change writes a Lease that does not belong to the plane.
func written(out *evidence.Run, c *state.Change) bool {
	_, old := out.History.Baseline[c.Ref]
	return !old && c.After != nil && Is(c.Ref, c.After)
}

// Refused reports whether the controller tried to take a Lease in a run, but all of its
// requests failed.
func Refused(out *evidence.Run) (refused bool) {
	for _, e := range out.Entries {
		if e.Call == nil || !request.IsLease(e.Call.Target) {
			continue
		}
		if e.Call.Code < 300 && e.Call.Verb != "get" {
			return false
		}
		refused = refused || e.Call.Code == http.StatusForbidden
	}
	return refused
}
