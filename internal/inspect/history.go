package inspect

import (
	"slices"
	"strconv"

	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Merge adds the history of the store to the entries of the same run, and numbers all of them
// again. The times of both must count from the same moment.
func Merge(entries []trace.Entry, h state.History) []trace.Entry {
	var all []trace.Entry
	for ref, object := range h.Baseline {
		revision, _ := strconv.ParseInt(object.Metadata("resourceVersion"), 10, 64)
		all = append(all, commitOf(ref, revision, trace.Existed, object))
	}
	slices.SortFunc(all, func(a, b trace.Entry) int { return int(a.Commit.Revision - b.Commit.Revision) })
	n := len(all)
	for _, c := range h.Changes {
		e := commitOf(c.Ref, c.Revision, string(c.Op), c.After)
		e.At = c.At
		all = append(all, e)
	}
	all = append(all, entries...)
	// If an entry of the trace and a commit have the same time, the entry is older, because commits
	// are seen later.
	slices.SortStableFunc(all[n:], func(a, b trace.Entry) int { return int(a.At - b.At) })
	for i := range all {
		all[i].Seq = int64(i) + 1
	}
	return all
}

func commitOf(ref state.Ref, revision int64, op string, object state.Object) trace.Entry {
	return trace.Entry{Commit: &trace.Commit{
		Revision: revision, Op: op, Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, Object: object,
	}}
}
