package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// window is a single step, or a series of steps during which a fault holds watches back. The
// changes of all steps in a window are counted together.
type window struct {
	name             string
	after, upTo      int64
	before, at       *StepReference
	creates, deletes map[string]int // in the reference
	upsets, rollouts map[string]int // in the reference
	removes          bool
	several          bool // the window has more than one step
}

func (in *input) windows() []window {
	var all []window
	open := false
	for _, s := range in.steps {
		if !open {
			all = append(all, window{after: s.Began, before: s.before, creates: map[string]int{}, deletes: map[string]int{},
				upsets: map[string]int{}, rollouts: map[string]int{}})
		}
		w := &all[len(all)-1]
		w.several = open
		w.name, w.upTo, w.at = s.Name, s.end, s.want
		w.removes = w.removes || s.deletes
		for key, n := range s.want.Creates {
			w.creates[key] += n
		}
		for key, n := range s.want.Deletes {
			w.deletes[key] += n
		}
		for key, n := range s.want.Upsets {
			w.upsets[key] += n
		}
		for key, n := range s.want.Rollouts {
			w.rollouts[key] += n
		}
		open = s.held
	}
	if open {
		return all[:len(all)-1] // the run was stopped before the watches continued
	}
	return all
}

// blips finds deletions that never happen without the fault. Even if the end state is
// right, users of the deleted object were affected.
func blips(in *input) []Finding {
	for _, w := range in.windows() {
		if lost := in.lost(w); len(lost) > 0 {
			return []Finding{in.blip(w, lost)}
		}
	}
	return nil
}

// lost returns the canonical names of the objects that were deleted too often.
func (in *input) lost(w window) []string {
	m := in.ref.Mask
	count, made := map[string]int{}, map[string]int{}
	for _, c := range in.run.History.Between(w.after, w.upTo) {
		key := in.labels.Of(c.Ref)
		if c.Op == state.Updated || !m.Counts(c, key) {
			continue
		}
		if c.Op == state.Created {
			made[key]++
		} else if !in.excused(c, key) && !in.retired(c, key) {
			count[key]++
		}
	}
	var lost []string
	for key, n := range count {
		if n > w.deletes[key] && !w.transient(key) && !w.alsoOtherwise(key, made[key]) && !in.resurrected(w, key, made[key], n) {
			lost = append(lost, key)
		}
	}
	slices.SortFunc(lost, func(a, b string) int { return cmp.Or(minor(a)-minor(b), strings.Compare(a, b)) })
	return lost
}

// transient reports whether the object, for example a lock or a Job, is created and deleted
// within the step even without a fault. With a fault, the object may be created and deleted
// more often.
func (w window) transient(key string) bool {
	if w.creates[key] == 0 || w.deletes[key] == 0 {
		return false
	}
	return !w.before.has(key) && !w.at.has(key)
}

// alsoOtherwise reports whether objects of this name are also deleted in the reference.
// alsoOtherwise returns false if the run created more objects of this name than the reference,
// because then a replacement was itself deleted and replaced.
//
// alsoOtherwise hides no loss. If as many objects of the name exist at the end as in the reference,
// each extra deletion needs an extra creation. If fewer exist, the end state is wrong, and the
// oracle endState reports it.
func (w window) alsoOtherwise(key string, made int) bool {
	return w.deletes[key] > 0 && made <= w.creates[key]
}

// resurrected reports whether all the deleted objects should have been gone already, and existed
// only because an old list made the controller create them again. A controller may act on an old
// list. The objects existed only until the next event, so their deletion is no loss.
func (in *input) resurrected(w window, key string, made, deleted int) bool {
	f := in.run.Fault
	return f != nil && f.Kind == fault.StaleRestart && !w.at.has(key) && deleted-w.deletes[key] <= made-w.creates[key]
}

func (s *StepReference) has(key string) bool {
	return s != nil && slices.ContainsFunc(s.World.Objects[key], func(content any) bool { return content != nil })
}

// excused reports whether the controller is not to blame for a deletion, because the
// checker caused it, because the controller could not know that it had created the object,
// or because the object was created after its owner was gone.
func (in *input) excused(c state.Change, key string) bool {
	if in.fromTarget(c, key) || in.takesDown(c) {
		return true
	}
	uid := c.Before.Metadata("uid")
	if uid != "" && in.lostCreate(uid) {
		return true
	}
	return in.ownersGone(c)
}

// fromTarget reports whether the object is the target of the fault, or is owned by it. If another
// client deleted or edited an object, the controller repairs it in the same step. A finalizer that
// another client added takes effect in a later step.
func (in *input) fromTarget(c state.Change, key string) bool {
	f := in.run.Fault
	if f == nil || f.Kind != fault.DeleteChild && f.Kind != fault.EditChild && f.Kind != fault.AddFinalizer {
		return false
	}
	if f.Kind != fault.AddFinalizer && !in.inFaultyStep(c.Revision) {
		return false
	}
	if f.EditsMetadata() { // another object may stand in for the target, until the target is recognized again
		kind, _, _ := strings.Cut(in.target(), " ")
		if c.Ref.String() == kind {
			return true
		}
	}
	return key == in.target() || in.ownedBy(in.target(), c.Before)
}

// inFaultyStep reports whether a revision belongs to the step in which the fault was applied.
func (in *input) inFaultyStep(revision int64) bool {
	return slices.ContainsFunc(in.steps, func(s step) bool { return s.Faulty && revision > s.Began && revision <= s.end })
}

// byUID returns the last change that wrote an object with the UID.
func (in *input) byUID(uid string) (state.Change, bool) {
	var found state.Change
	for _, c := range in.run.History.Changes {
		if c.After != nil && c.After.Metadata("uid") == uid {
			found = c
		}
	}
	return found, found.After != nil
}

// lostCreate reports whether the controller created the object with a UID, but does not know about it: the
// answer was lost, or the controller was killed or shutting down before its next write. A controller that
// is shutting down may create several objects, and each of two kills may lose one.
func (in *input) lostCreate(uid string) bool {
	f := in.run.Fault
	if f == nil || !slices.Contains([]fault.Kind{fault.KillLost, fault.KillAfter, fault.KillAgain, fault.Terminate, fault.LoseResponse}, f.Kind) {
		return false
	}
	several := f.Kind == fault.Terminate || f.Kind == fault.KillAgain
	if !several && f.Point.Verb != "create" && f.Point.Verb != "patch" {
		return false
	}
	for _, c := range in.run.History.Changes {
		author := in.authors[c.Revision]
		if c.Op != state.Created || author == nil {
			continue
		}
		if author.Call.Lost || in.lastOf(author.Instance) == author.Seq || in.isEnding(author) {
			if c.After.Metadata("uid") == uid {
				return true
			}
			if !several {
				return false // one fault loses one object
			}
		}
	}
	return false
}

// isEnding reports whether an instance made a request while it was shutting down, so that it may
// have stopped waiting for the answer.
func (in *input) isEnding(e *trace.Entry) bool {
	return slices.ContainsFunc(in.run.Entries, func(other trace.Entry) bool {
		return other.Process != nil && other.Process.What == "terminated" && other.Instance == e.Instance && other.Seq < e.Seq
	})
}

// takesDown reports whether an object that a controller has set up at its start was deleted while an
// instance was shutting down. Some controllers remove their webhook configurations when they exit, so
// that no request waits for them.
func (in *input) takesDown(c state.Change) bool {
	if len(in.run.Steps) == 0 || !in.isShuttingDown(c.At) {
		return false
	}
	start := in.run.Steps[0]
	_, before := in.run.History.At(start.Began)[c.Ref]
	_, after := in.run.History.At(start.Rested)[c.Ref]
	return after && !before
}

// isShuttingDown reports whether an instance had been asked to exit, and had not ended, at a time.
func (in *input) isShuttingDown(at time.Duration) bool {
	asked := map[string]bool{}
	for _, e := range in.run.Entries {
		if e.Process == nil || e.At > at {
			continue
		}
		asked[e.Instance] = e.Process.What == "terminated"
	}
	return slices.Contains(slices.Collect(maps.Values(asked)), true)
}

// lastOf returns the sequence number of the last write that an instance made before it was
// killed. If the instance was not killed, lastOf returns 0.
func (in *input) lastOf(instance string) int64 {
	var last int64
	for i := range in.run.Entries {
		e := &in.run.Entries[i]
		if e.Instance != instance {
			continue
		}
		if isWork(e) && succeeded(e) {
			last = e.Seq
		}
		if e.Process != nil && e.Process.What == "killed" {
			return last
		}
	}
	return 0
}

// ownersGone reports whether all owners of the object were already deleted or being deleted
// when it was created. An object without living owners was created from an outdated view,
// and then garbage-collected.
func (in *input) ownersGone(c state.Change) bool {
	owners := c.Before.Owners()
	if len(owners) == 0 {
		return false
	}
	var made int64
	for _, other := range in.run.History.Changes {
		if other.Op == state.Created && other.After.Metadata("uid") == c.Before.Metadata("uid") {
			made = other.Revision
		}
	}
	if made == 0 {
		return false
	}
	living := in.run.History.Living(made)
	for _, owner := range owners {
		for _, object := range living {
			if object.Metadata("uid") == owner.UID && !object.Deleting() {
				return false
			}
		}
	}
	return true
}

func (in *input) blip(w window, lost []string) Finding {
	var differences []state.Difference
	for _, key := range lost {
		differences = append(differences, state.Difference{Object: key, Path: "(deletions)",
			Want: fmt.Sprint(w.deletes[key]), Got: fmt.Sprint(in.ref.Mask.Tally(in.run.History, in.labels, w.after, w.upTo).Deletes[key])})
	}
	what := in.blipped(w, lost[0])
	if len(lost) > 1 {
		what = fmt.Sprintf(" and %d more objects are deleted on the way", len(lost)-1)
	}
	often := ", which never happens without the fault"
	if w.deletes[lost[0]] > 0 {
		often = " more often than without the fault"
	}
	return in.finding(DestructiveBlip, w.name, lost[0]+what+often, differences)
}

// blipped describes what happened to an object that was deleted too often, as the rest of a
// sentence. An object that is being deleted anyway is no loss, so its sentence does not
// describe a loss.
func (in *input) blipped(w window, key string) string {
	before, after := w.before.has(key), w.at.has(key)
	switch leaves := before && !after || in.leaves(w, key); {
	case leaves && w.creates[key] < in.ref.Mask.Tally(in.run.History, in.labels, w.after, w.upTo).Creates[key]:
		return " is created again while it is being deleted, and then deleted again"
	case leaves:
		return " is deleted once more, although it is being deleted anyway"
	case !before && !after:
		return " is created and deleted again"
	}
	return " is deleted and recreated"
}

// leaves reports whether an owner of the object was gone or being deleted at each deletion
// of the object in a window.
func (in *input) leaves(w window, key string) bool {
	found := false
	for _, c := range in.run.History.Between(w.after, w.upTo) {
		if c.Op != state.Deleted || in.labels.Of(c.Ref) != key {
			continue
		}
		if found = true; !in.ownerLeaves(c) {
			return false
		}
	}
	return found
}

// ownerLeaves reports whether an owner of a deleted object was gone or being deleted.
func (in *input) ownerLeaves(c state.Change) bool {
	living := in.run.History.Living(c.Revision)
	return slices.ContainsFunc(c.Before.Owners(), func(owner state.Owner) bool {
		for _, object := range living {
			if object.Metadata("uid") == owner.UID {
				return object.Deleting()
			}
		}
		return true
	})
}
