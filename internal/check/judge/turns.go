package judge

import (
	"fmt"
	"reflect"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
)

// A turn is a part of a step in which a test suite runs. It begins with a declaration: a change with
// which the suite creates an object, changes its content, or requests its deletion. It ends before
// the next declaration, or when the suite ends. A suite usually goes on only when the controller has
// done what the suite waits for.
type turn struct {
	// name identifies the turn in every run of the suite, even if the names of objects are random.
	name string
	ref  state.Ref
	// from is the revision of the declaration, and until the last revision of the turn. began and end
	// are the times at which the turn begins and ends.
	from, until int64
	began, end  time.Duration
}

// turnsOf returns the turns of a step in which a suite ran.
func turnsOf(run *evidence.Run, s evidence.Step) (turns []turn) {
	by, made, closing := authors(run), map[state.Ref]bool{}, map[string]bool{}
	for _, c := range run.History.Between(s.Began, s.Suite.Ended) {
		if c.Ref.Kind == "Namespace" && c.Ref.Group == "" && c.After.Deleting() {
			closing[c.Ref.Name] = true
		}
		if by[c.Revision] != nil || c.Op == state.Created && !isDeclared(&c) {
			continue
		}
		what := ""
		switch {
		case c.Op == state.Created:
			what, made[c.Ref] = "created", true
		case !made[c.Ref] || closing[c.Ref.Namespace]:
		case c.Op == state.Updated && c.After.Deleting() && !c.Before.Deleting(), c.Op == state.Deleted && !c.Before.Deleting():
			what = "deleted"
		case c.Op == state.Updated && !c.After.Deleting() && !reflect.DeepEqual(content(c.Before), content(c.After)):
			what = "changed"
		}
		if what == "" {
			continue
		}
		if n := len(turns); n > 0 {
			turns[n-1].until, turns[n-1].end = c.Revision-1, c.At
		}
		turns = append(turns, turn{fmt.Sprintf("%d %s %s", len(turns)+1, what, c.Ref.String()), c.Ref, c.Revision, s.Suite.Ended, c.At, s.Suite.EndedAt})
	}
	return turns
}

// isDeclared reports whether a new object that the controller did not create may come from a suite.
// Kubernetes itself creates objects in new namespaces, and for other objects.
func isDeclared(c *state.Change) bool {
	switch {
	case len(c.After.Owners()) > 0, request.IsBookkeepingObject(c.Ref.GroupKind, c.After), request.IsDerived(c.Ref.GroupKind):
		return false
	case c.Ref.Kind == "ServiceAccount" && c.Ref.Name == "default", c.Ref.Kind == "ConfigMap" && c.Ref.Name == "kube-root-ca.crt":
		return false
	}
	return c.Ref.Kind != "PersistentVolume"
}

// declared returns the canonical names of the objects that the turns declare.
func declared(labels *state.Labels, turns []turn) (names []string) {
	for _, t := range turns {
		names = append(names, labels.Of(t.ref))
	}
	return names
}

// turnAt returns the index of the turn at a revision, or -1.
func turnAt(turns []turn, revision int64) int {
	for i := len(turns) - 1; i >= 0; i-- {
		if turns[i].from <= revision {
			return i
		}
	}
	return -1
}

// Moved returns the time of the last event, up to the given time, after which a test suite may have
// to wait for the controller: a change of the cluster, an attempt of the controller to change it, the
// start or end of a process, or an effect of a fault.
func Moved(run *evidence.Run, upTo time.Duration) (last time.Duration) {
	for _, at := range moves(run) {
		if at <= upTo {
			last = max(last, at)
		}
	}
	return last
}

// moves returns the times of all events that Moved considers, in any order.
func moves(run *evidence.Run) (all []time.Duration) {
	for i := range run.History.Changes {
		if c := &run.History.Changes[i]; !isMaintained(c) {
			all = append(all, c.At)
		}
	}
	for i := range run.Entries {
		e := &run.Entries[i]
		if e.Process != nil || e.Fault != nil || e.Call != nil && (e.Call.Injected || e.Instance != "" && request.IsWork(e.Call)) {
			all = append(all, e.At)
		}
	}
	return all
}

// isMaintained reports whether the object of a change is one that somebody writes even at rest.
func isMaintained(c *state.Change) bool {
	object := c.After
	if object == nil {
		object = c.Before
	}
	return request.IsBookkeepingObject(c.Ref.GroupKind, object)
}

// Pauses returns the longest pause before a change that the controller made while a test suite ran,
// and the longest time between the last change of another client and such a change. The pauses of the
// suite itself do not count.
func Pauses(run *evidence.Run, s evidence.Step) (pause, work time.Duration) {
	by := authors(run)
	last, other := time.Duration(-1), time.Duration(-1)
	for i, c := range run.History.Changes {
		if c.Revision <= s.Began || c.Revision > s.Rested || isMaintained(&run.History.Changes[i]) {
			continue
		}
		switch {
		case by[c.Revision] == nil:
			other = c.At
		case other >= 0:
			pause, work = max(pause, c.At-last), max(work, c.At-other)
		}
		last = c.At
	}
	return pause, work
}
