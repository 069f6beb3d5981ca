package judge

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// window is one step, or the steps over which a fault held watches back: what
// they come to is counted together.
type window struct {
	name             string
	after, upTo      int64
	before, at       *StepReference
	creates, deletes map[string]int // of the reference
	removes          bool
}

func (in *input) windows() []window {
	var all []window
	open := false
	for _, s := range in.steps {
		if !open {
			all = append(all, window{after: s.Began, before: s.before, creates: map[string]int{}, deletes: map[string]int{}})
		}
		w := &all[len(all)-1]
		w.name, w.upTo, w.at = s.Name, s.end, s.want
		w.removes = w.removes || s.deletes
		for key, n := range s.want.Creates {
			w.creates[key] += n
		}
		for key, n := range s.want.Deletes {
			w.deletes[key] += n
		}
		open = s.held
	}
	if open {
		return all[:len(all)-1] // it was stopped before the watches went on
	}
	return all
}

// blips finds deletions that never happen without the fault, although in the end
// all is as it should be: users of what was deleted saw it go.
func blips(in *input) []Finding {
	for _, w := range in.windows() {
		if lost := in.lost(w); len(lost) > 0 {
			return []Finding{in.blip(w, lost)}
		}
	}
	return nil
}

// lost are the canonical names of the objects that were deleted too often.
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
		} else if !in.excused(c, key) {
			count[key]++
		}
	}
	var lost []string
	for key, n := range count {
		if n > w.deletes[key] && !w.transient(key) && !w.alsoOtherwise(key, made[key]) {
			lost = append(lost, key)
		}
	}
	sort.Strings(lost)
	return lost
}

// transient says that without a fault the object comes and goes within the step,
// as a lock or a Job does. It may do so more often.
func (w window) transient(key string) bool {
	if w.creates[key] == 0 || w.deletes[key] == 0 {
		return false
	}
	return !w.before.has(key) && !w.at.has(key)
}

// alsoOtherwise says that the deletions are of a kind that the reference does too,
// and none was made that need not have been. What replaced an object is not itself
// to be replaced.
func (w window) alsoOtherwise(key string, made int) bool {
	return w.deletes[key] > 0 && made <= w.creates[key]
}

func (s *StepReference) has(key string) bool {
	return s != nil && slices.ContainsFunc(s.World.Objects[key], func(content any) bool { return content != nil })
}

// excused says that a deletion is not the controller's fault: we did it, it tidied
// up what it could not know that it had made, or the garbage collector took what
// came too late for its owner.
func (in *input) excused(c state.Change, key string) bool {
	if in.fromTarget(c, key) {
		return true
	}
	uid := state.Metadata(c.Before, "uid")
	if in.lostCreate() == uid && uid != "" {
		return true
	}
	return in.ownersGone(c)
}

// fromTarget says that the object is the one that the fault was about, or belongs
// to it.
func (in *input) fromTarget(c state.Change, key string) bool {
	f := in.run.Fault
	if f == nil || f.Kind != fault.DeleteChild && f.Kind != fault.EditChild && f.Kind != fault.AddFinalizer {
		return false
	}
	kind, name, _ := strings.Cut(f.Target, "/")
	target := kind + " " + strings.TrimPrefix(name, "/")
	for depth, object := 0, c.Before; depth < 8; depth++ {
		if key == target {
			return true
		}
		owners := state.Owners(object)
		if len(owners) == 0 {
			return false
		}
		owner, ok := in.byUID(owners[0].UID)
		if !ok {
			return false
		}
		key, object = in.labels.Of(owner.Ref), owner.After
	}
	return false
}

// byUID is the last change that wrote an object with the UID.
func (in *input) byUID(uid string) (state.Change, bool) {
	var found state.Change
	for _, c := range in.run.History.Changes {
		if c.After != nil && state.Metadata(c.After, "uid") == uid {
			found = c
		}
	}
	return found, found.After != nil
}

// lostCreate is the UID of the object whose creation the controller did not get
// to know of, or had no time to write down.
func (in *input) lostCreate() string {
	f := in.run.Fault
	if f == nil || !slices.Contains([]fault.Kind{fault.KillLost, fault.KillAfter, fault.LoseResponse}, f.Kind) || f.Point.Verb != "create" && f.Point.Verb != "patch" {
		return ""
	}
	for _, c := range in.run.History.Changes {
		author := in.authors[c.Revision]
		if c.Op != state.Created || author == nil {
			continue
		}
		if author.Call.Lost || in.lastOf(author.Instance) == author.Seq {
			return state.Metadata(c.After, "uid")
		}
	}
	return ""
}

// lastOf is the number of the last write of an instance that was killed.
func (in *input) lastOf(instance string) int64 {
	var last int64
	for i := range in.run.Entries {
		e := &in.run.Entries[i]
		if e.Instance != instance {
			continue
		}
		if isWrite(e) && succeeded(e) {
			last = e.Seq
		}
		if e.Process != nil && e.Process.What == "killed" {
			return last
		}
	}
	return 0
}

// ownersGone says that all owners of the object had been deleted, or were being
// deleted, when it was made: it was made from a view that was late, and collected.
func (in *input) ownersGone(c state.Change) bool {
	owners := state.Owners(c.Before)
	if len(owners) == 0 {
		return false
	}
	var made int64
	for _, other := range in.run.History.Changes {
		if other.Op == state.Created && state.Metadata(other.After, "uid") == state.Metadata(c.Before, "uid") {
			made = other.Revision
		}
	}
	if made == 0 {
		return false
	}
	living := in.run.History.Living(made)
	for _, owner := range owners {
		for _, object := range living {
			if state.Metadata(object, "uid") == owner.UID && state.Metadata(object, "deletionTimestamp") == "" {
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
	what := " is deleted and made anew"
	if !w.before.has(lost[0]) && !w.at.has(lost[0]) {
		what = " is made and deleted again"
	}
	if len(lost) > 1 {
		what = fmt.Sprintf(" and %d more are deleted on the way", len(lost)-1)
	}
	return in.finding(DestructiveBlip, w.name, lost[0]+what+", which never happens otherwise", differences)
}
