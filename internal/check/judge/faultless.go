package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// Faultless returns the findings of runs without a fault. If the runs could not be
// compared, the reference is nil, and Faultless returns only what a single run shows.
func Faultless(r *Reference, runs []*evidence.Run, s *subject.Subject) []Finding {
	learnt := r
	if r == nil {
		name := ""
		if len(runs) > 0 {
			name = runs[0].Scenario
		}
		learnt = &Reference{Scenario: &scenario.Scenario{Name: name}}
	}
	var inputs []*input
	for _, run := range runs {
		inputs = append(inputs, newInput(learnt, run, s))
	}
	var findings []Finding
	for _, ask := range []func([]*input) []Finding{
		crashesAlone,    // the controller panics, or exits
		loopsAlone,      // the controller never stops writing
		expectedAlone,   // an expectation of the scenario does not hold
		badOwnersAlone,  // an owner does not exist, or may not be an owner
		reownedAlone,    // the controller took an object from one living owner for another
		exposedAlone,    // a value of a Secret is readable where Secrets are not
		invariantsAlone, // a rule of the scenario does not hold in a revision
		refusedLate,     // the API server keeps rejecting a write
		removedAPIs,     // Kubernetes no longer serves a version that the controller uses
	} {
		findings = append(findings, ask(inputs)...)
	}
	if r != nil {
		var compared []Finding
		compared = append(compared, takenAlone(inputs)...)
		compared = append(compared, sparedAlone(r, inputs)...)
		compared = append(compared, pathDependent(r, inputs)...)
		compared = append(compared, leftOver(inputs)...)
		compared = append(compared, namespaceAlone(inputs)...)
		compared = append(compared, undeleted(inputs)...)
		findings = append(findings, withoutConsequences(compared)...)
	}
	return append(findings, MissingPermissions(s, runs)...)
}

// withoutConsequences removes differences that an earlier finding already shows, and then findings
// without remaining differences. An object that is left over after one step is still there after
// later steps, and after the deletion.
func withoutConsequences(findings []Finding) (kept []Finding) {
	shown := map[[2]string]bool{}
	for _, f := range findings {
		var left []state.Difference
		for _, d := range f.Differences {
			if place := [2]string{d.Object, d.Path}; !shown[place] {
				shown[place] = true
				left = append(left, d)
			}
		}
		if len(left) > 0 {
			f.Differences = left
			kept = append(kept, f)
		}
	}
	return kept
}

func crashesAlone(inputs []*input) []Finding {
	var ended []Finding
	for _, in := range inputs {
		if found := panics(in); found != nil {
			return found
		}
		ended = append(ended, exited(in)...)
	}
	// A single exit may have been caused by the machine rather than the controller.
	if len(ended) < 2 {
		return nil
	}
	return ended[:1]
}

// loopsAlone finds writes that are repeated at rest, and steps that never come to rest. A few writes in
// only one of several runs are no loop: on a busy machine, the controller still catches up with events.
func loopsAlone(inputs []*input) []Finding {
	var findings []Finding
	shown := map[string]int{}
	for _, in := range inputs {
		for _, l := range loopsOf(in) {
			shown[l.what]++
		}
	}
	for _, in := range inputs {
		for _, l := range loopsOf(in) {
			if n := shown[l.what]; n > 1 || n == 1 && (len(inputs) == 1 || len(l.writes) >= fewestAfterFault) {
				findings, shown[l.what] = append(findings, in.loop(l.step, l.loop, l.why)), 0
			}
		}
	}
	return findings
}

// loopAt is a loop with the step that shows it.
type loopAt struct {
	loop
	step, why string
}

// loopsOf returns the loops of a run, each with the first step that shows it.
func loopsOf(in *input) (all []loopAt) {
	add := func(l loopAt) {
		if !slices.ContainsFunc(all, func(known loopAt) bool { return known.what == l.what }) {
			all = append(all, l)
		}
	}
	for _, s := range in.run.Steps {
		for _, l := range idleLoops(in.ref.Mask, in.run, s) {
			add(loopAt{l, s.Name, "although there is nothing to do"})
		}
		if l, ok := restlessLoop(in.ref.Mask, in.labels, in.run, s); ok && s.Restless {
			add(loopAt{l, s.Name, "and does not come to rest"})
		}
	}
	return all
}

// expectedAlone finds expectations that fail in every run.
func expectedAlone(inputs []*input) []Finding {
	if len(inputs) == 0 {
		return nil
	}
	for i, s := range inputs[0].run.Steps {
		all := len(s.Failed) > 0
		for _, in := range inputs[1:] {
			all = all && i < len(in.run.Steps) && len(in.run.Steps[i].Failed) > 0
		}
		if all {
			return []Finding{inputs[0].finding(Diverged, s.Name, "even without a fault, an expectation of the scenario does not hold: "+s.Failed[0], nil)}
		}
	}
	return nil
}

func badOwnersAlone(inputs []*input) []Finding {
	var findings []Finding
	for _, in := range inputs {
		for i, s := range in.run.Steps {
			if key, why := in.badOwner(end(in.run, i)); key != "" {
				findings = append(findings, in.finding(Diverged, s.Name, key+" "+why,
					[]state.Difference{{Object: key, Path: "metadata.ownerReferences"}}))
				break
			}
		}
	}
	if len(findings) < len(inputs) {
		return nil
	}
	return findings[:min(1, len(findings))]
}

// pathDependent compares steps that should lead to the same state. pathDependent ignores counters
// and histories, which naturally depend on earlier steps, and differences that are caused by an
// object that outlived its resource.
func pathDependent(r *Reference, inputs []*input) []Finding {
	if len(inputs) == 0 {
		return nil
	}
	var findings []Finding
	for _, s := range r.repeated() {
		differences := inputs[0].dependent(s.SameAs, s.Name)
		if o := inputs[0].outlived(s.SameAs, s.Name); o != nil {
			differences = o.unexplained(differences)
		}
		differences = slices.DeleteFunc(differences, func(d state.Difference) bool { return keptCredentials(inputs, s.Name, d) })
		if before := r.direct(s); before != "" {
			var remarks []Finding
			differences, remarks = inputs[0].afterCreation(s, before, differences)
			findings = append(findings, remarks...)
		}
		if len(differences) == 0 || inputs[0].declined(differences) != nil {
			continue
		}
		findings = append(findings, inputs[0].dependence(s, differences))
	}
	return findings
}

// Staying returns a finding for each of the texts, which belong to fields that were changed in the same steps of a run, or
// nil if nothing stays of it: the differences, of the selected objects, that contain the text. No other run is needed,
// because a text can only come from its field.
func Staying(texts []string, sc *scenario.Scenario, run *evidence.Run, s *subject.Subject, selected func(object string) bool) ([]*Finding, error) {
	r, err := learn(sc, []*evidence.Run{run})
	if err != nil {
		return nil, err
	}
	in := newInput(r, run, s)
	findings := make([]*Finding, len(texts))
	for i, text := range texts {
		for _, step := range r.repeated() {
			differences := slices.DeleteFunc(in.dependent(step.SameAs, step.Name), func(d state.Difference) bool { return !selected(d.Object) })
			differences = holding(text, differences, in.rested(step.Name))
			if len(differences) > 0 {
				f := in.dependence(step, differences)
				findings[i] = &f
				break
			}
		}
	}
	return findings, nil
}

// holding returns the differences of a world that contain a text. A whole object contains the texts of its fields. If there is
// no other difference, the text may be in a value that was truncated.
func holding(text string, all []state.Difference, world state.World) []state.Difference {
	var holding, truncated []state.Difference
	for _, d := range all {
		content, err := json.Marshal(world.Objects[d.Object])
		switch {
		case err != nil || !strings.Contains(string(content), text):
		case d.Path == "" || strings.Contains(d.Path+" "+d.Got, text):
			holding = append(holding, d)
		case strings.Contains(d.Got, "…"):
			truncated = append(truncated, d)
		}
	}
	if len(holding) == 0 {
		return truncated
	}
	return holding
}

// dependence returns the finding that a step leads to another state than it should.
func (in *input) dependence(s scenario.Step, differences []state.Difference) Finding {
	return in.finding(PathDependent, s.Name,
		"after step "+s.Name+" the state should be the same as after step "+s.SameAs+": "+outcome(differences, false), differences)
}

// repeated returns the steps that should lead to the same state as an earlier
// step.
func (r *Reference) repeated() (steps []scenario.Step) {
	for _, s := range r.Scenario.Steps {
		if s.SameAs != "" && r.find(s.SameAs) != nil && r.find(s.Name) != nil {
			steps = append(steps, s)
		}
	}
	return steps
}

// dependent returns the differences between the states after two steps. It omits what differs anyway, counters,
// histories, and content that was written by the client that declares the state.
func (in *input) dependent(earlier, later string) []state.Difference {
	declared := in.declared(later)
	return slices.DeleteFunc(in.between(earlier, later), func(d state.Difference) bool {
		return slices.Contains(in.ref.Anyway, d.Object+" "+d.Path) || counter(d) || hollow(d) || in.ref.passed(earlier, d) || in.ref.isEntry(d.Object) || declared[d.Object] && isContent(d.Path)
	})
}

// declining matches the reason or the message of a condition with which a controller reports
// that it does not support the declared state.
var declining = regexp.MustCompile(`(?i)unsupported|not ?supported|not ?allowed`)

// declined returns the condition with which a custom resource reports that its controller
// refuses the declared state, for example a smaller size. Such a controller tells the
// user that the state is not the declared one. Without such a condition, declined returns
// nil.
func (in *input) declined(differences []state.Difference) *state.Difference {
	if in.subject == nil {
		return nil
	}
	for i, d := range differences {
		kind, _, _ := strings.Cut(d.Object, " ")
		inCondition := strings.HasPrefix(d.Path, "status.conditions") && (strings.HasSuffix(d.Path, ".reason") || strings.HasSuffix(d.Path, ".message"))
		if slices.Contains(in.subject.Primary, kind) && inCondition && declining.MatchString(d.Got) && !declining.MatchString(d.Want) {
			return &differences[i]
		}
	}
	return nil
}

// Refusals returns a note for each step that should lead to the same state as an earlier step, but
// whose state the controller refuses, according to a condition.
func Refusals(r *Reference, runs []*evidence.Run, s *subject.Subject) (notes []string) {
	if r == nil || len(runs) == 0 {
		return nil
	}
	in := newInput(r, runs[0], s)
	for _, step := range r.repeated() {
		if d := in.declined(in.between(step.SameAs, step.Name)); d != nil {
			notes = append(notes, fmt.Sprintf("scenario %s: the controller refuses the state of step %s (%s of %s is %s), so it is not compared with step %s",
				r.Scenario.Name, step.Name, d.Path, d.Object, d.Got, step.SameAs))
		}
	}
	return notes
}

// between returns the differences between the states after two steps. A field that is not compared
// after one of the steps cannot be compared between the two.
func (in *input) between(earlier, later string) []state.Difference {
	return in.rested(earlier).Diff(in.rested(later))
}

func (in *input) rested(step string) state.World {
	if i := in.indexOf(step); i >= 0 {
		return in.ref.Mask.Canonical(in.run.History.At(in.run.Steps[i].Rested))
	}
	return state.World{}
}

// indexOf returns the index of a step in the run, or -1.
func (in *input) indexOf(step string) int {
	return slices.IndexFunc(in.run.Steps, func(s evidence.Step) bool { return s.Name == step })
}

// declared returns the objects whose content a client other than the controller changed in
// a step. The client's manifest decides how the content is written: the controller may
// rewrite 60s as 1m0s, but the next manifest contains 60s again. A deletion declares no
// content.
func (in *input) declared(name string) map[string]bool {
	declared := map[string]bool{}
	i := in.indexOf(name)
	if i < 0 {
		return nil
	}
	for _, c := range in.run.History.Between(in.run.Steps[i].Began, end(in.run, i)) {
		if c.After != nil && in.authors[c.Revision] == nil && !reflect.DeepEqual(content(c.Before), content(c.After)) {
			declared[in.labels.Of(c.Ref)] = true
		}
	}
	return declared
}

func isContent(path string) bool {
	return !strings.HasPrefix(path, "status") && !strings.HasPrefix(path, "metadata")
}

// content returns an object without metadata and status.
func content(object state.Object) state.Object {
	object = maps.Clone(object)
	delete(object, "metadata")
	delete(object, "status")
	return object
}

// counter reports whether a number in a status has increased, or whether the number of a
// revision or of an attempt has appeared.
func counter(d state.Difference) bool {
	var want, got float64
	if !strings.HasPrefix(d.Path, "status.") || json.Unmarshal([]byte(d.Got), &got) != nil {
		return false
	}
	if d.Want == "" {
		return counting.MatchString(d.Path)
	}
	return json.Unmarshal([]byte(d.Want), &want) == nil && got > want && want > 0
}

// hollow reports whether one of the states has an empty text, or an empty object or list in a status,
// and the other has nothing. Elsewhere, an empty object or list may have a meaning: an empty selector
// selects everything.
func hollow(d state.Difference) bool {
	none := []string{"", `""`}
	if isStatus(d.Path) {
		none = append(none, "{}", "[]")
	}
	return d.Path != "" && slices.Contains(none, d.Want) && slices.Contains(none, d.Got)
}

// leftOver finds leaked objects: the controller made them for a resource, and in every run
// they still exist after that resource was deleted.
func leftOver(inputs []*input) []Finding {
	if len(inputs) == 0 {
		return nil
	}
	in := inputs[0]
	i := in.finalDeletion()
	if i < 0 {
		return nil
	}
	left := slices.DeleteFunc(leftInAll(inputs, i), func(key string) bool { return credentials(inputs, i, key) })
	if len(left) == 0 {
		return nil
	}
	var differences []state.Difference
	for _, key := range left {
		differences = append(differences, state.Difference{Object: key, Got: `"there"`})
	}
	return []Finding{in.finding(Leak, in.run.Steps[i].Name, "even without a fault, "+outcome(differences, true)+" after the deletion", differences)}
}

// leftInAll returns the objects that are left over in every run.
func leftInAll(inputs []*input, i int) []string {
	left := inputs[0].orphans(i)
	for _, other := range inputs[1:] {
		theirs := other.orphans(i)
		left = slices.DeleteFunc(left, func(key string) bool { return !slices.Contains(theirs, key) })
	}
	return left
}

// credentials reports whether a leftover object is a Secret without an owner whose values are new
// in each run. Controllers keep the credentials that they generate, because the data that they
// protect, such as the volumes of a database, may be kept as well.
func credentials(inputs []*input, i int, key string) bool {
	var first any
	for n, in := range inputs {
		object := in.left(i, key)
		if object["kind"] != "Secret" || object["apiVersion"] != "v1" || len(object.Owners()) > 0 {
			return false
		}
		if n == 0 {
			first = object["data"]
		} else if !reflect.DeepEqual(first, object["data"]) {
			return true
		}
	}
	return false
}

// keptCredentials reports whether a difference is a Secret with generated values that the
// controller keeps after a step, although the declared state no longer requires this Secret.
func keptCredentials(inputs []*input, step string, d state.Difference) bool {
	i := slices.IndexFunc(inputs[0].run.Steps, func(s evidence.Step) bool { return s.Name == step })
	return i >= 0 && d.Path == "" && d.Want == "" && credentials(inputs, i, d.Object)
}

// left returns the object that has the given canonical name and exists after a step.
func (in *input) left(i int, key string) state.Object {
	for ref, object := range in.run.History.Living(end(in.run, i)) {
		if in.labels.Of(ref) == key {
			return object
		}
	}
	return nil
}

// Kept returns a note for each object that is left over after the deletion, but is not a
// finding.
func Kept(r *Reference, runs []*evidence.Run, s *subject.Subject) (notes []string) {
	if r == nil || len(runs) == 0 {
		return nil
	}
	var inputs []*input
	for _, run := range runs {
		inputs = append(inputs, newInput(r, run, s))
	}
	for _, s := range r.Scenario.Steps {
		if s.SameAs == "" || r.find(s.SameAs) == nil || r.find(s.Name) == nil {
			continue
		}
		for _, d := range inputs[0].dependent(s.SameAs, s.Name) {
			if keptCredentials(inputs, s.Name, d) {
				notes = append(notes, d.Object+" is kept after step "+s.Name+" of scenario "+r.Scenario.Name+"; this is not a finding, because the controller generated its values, and may need them again")
			}
		}
	}
	i := inputs[0].finalDeletion()
	if i < 0 {
		return notes
	}
	for _, key := range leftInAll(inputs, i) {
		if credentials(inputs, i, key) {
			notes = append(notes, key+" is left over after the deletion; this is not a finding, because the controller generated its values, and may need them again")
		}
	}
	return notes
}

// finalDeletion finds the last step that changes anything. finalDeletion returns the index of this
// step if the step deletes a resource, and otherwise -1. A step that orphans objects on purpose
// does not count, because such objects are not a leak.
func (in *input) finalDeletion() int {
	for i := len(in.run.Steps) - 1; i >= 0; i-- {
		for _, s := range in.ref.Scenario.Steps {
			if s.Name != in.run.Steps[i].Name {
				continue
			}
			if s.Delete != nil && s.Delete.Propagation != "Orphan" && !s.Delete.Keep || s.Suite && len(in.deletedIn(s.Name)) > 0 {
				return i
			}
			if len(s.Apply) > 0 || s.Patch != nil || s.Scale != nil || len(s.Run) > 0 || s.Delete != nil {
				return -1
			}
		}
	}
	return -1
}

// orphans returns the objects that the controller created and that still exist although
// the resource that they belong to has been deleted.
func (in *input) orphans(i int) (left []string) {
	for _, deleted := range in.deletedIn(in.run.Steps[i].Name) {
		if !keeps(deleted) {
			left = append(left, in.orphansOf(deleted, i)...)
		}
	}
	sort.Strings(left)
	return slices.Compact(left)
}

// orphansOf returns the objects that belong to a deleted resource and still exist after a step.
func (in *input) orphansOf(deleted state.Object, i int) (left []string) {
	revision, since := end(in.run, i), in.firstMade(deleted)
	living := in.run.History.Living(revision)
	if in.othersLive(deleted, living) {
		return nil
	}
	for _, c := range in.run.History.Changes {
		object := living[c.Ref]
		key := in.labels.Of(c.Ref)
		if c.Op != state.Created || c.Revision < since || c.Revision > revision || object == nil || in.authors[c.Revision] == nil ||
			object.Metadata("uid") != c.After.Metadata("uid") || !in.ref.Mask.Counts(c, key) {
			continue
		}
		if belongs(object, deleted) {
			left = append(left, key)
		}
	}
	return left
}

// firstMade returns the revision at which an object of this name was created for the first time, or
// 0 if the run began with such an object. What the controller made before that cannot belong to it.
func (in *input) firstMade(object state.Object) int64 {
	changes := in.run.History.Changes
	last := slices.IndexFunc(changes, func(c state.Change) bool {
		return c.After != nil && c.After.Metadata("uid") == object.Metadata("uid")
	})
	if last < 0 || in.run.History.Baseline[changes[last].Ref] != nil {
		return 0
	}
	return changes[slices.IndexFunc(changes, func(c state.Change) bool { return c.Ref == changes[last].Ref })].Revision
}

// deletedBy returns the last state of the object that a step deletes, or nil if the object
// still exists or never existed.
func (in *input) deletedBy(step string) state.Object {
	for _, s := range in.ref.Scenario.Steps {
		if s.Name != step || s.Delete == nil {
			continue
		}
		var last state.Object
		for _, c := range in.run.History.Changes {
			if c.Ref.Kind == s.Delete.Kind && c.Ref.Name == s.Delete.Name && (s.Delete.Namespace == "" || c.Ref.Namespace == s.Delete.Namespace) {
				if c.Op == state.Deleted {
					last = c.Before
				} else {
					last = nil
				}
			}
		}
		return last
	}
	return nil
}

// othersLive reports whether other resources of the same kind still exist, to which the
// remaining objects may belong.
func (in *input) othersLive(deleted state.Object, living state.Snapshot) bool {
	for _, object := range living {
		if object["kind"] == deleted["kind"] && object["apiVersion"] == deleted["apiVersion"] {
			return true
		}
	}
	return false
}
