package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Trials is a scenario in which the fields of an object are changed, each alone: changed, and then
// changed back.
type Trials struct {
	Scenario *Scenario `json:"scenario"`
	// Title is the beginning of the names of all scenarios with the same sample.
	Title string `json:"title"`
	// Object is the changed object, and KindGroup its kind as "Kind.group".
	Object    ObjectRef `json:"object"`
	KindGroup string    `json:"kindGroup"`
	// Controls are the names of steps that make the controller reconcile although no field
	// changes.
	Controls []string `json:"controls"`
	Trials   []Trial  `json:"trials"`
	// Twin is a copy of the object under another name, for Beside.
	Twin map[string]any `json:"twin,omitempty"`
	// Again reports whether another sample of the kind has the same trials. They are made only to
	// confirm that a field has no effect with this sample either.
	Again bool `json:"again,omitempty"`
	// Bare reports whether each trial leaves an object empty, or leaves a field out. Such trials are only made
	// together, with Joint. Other Trials contain each change of an existing object, to be made alone.
	Bare bool `json:"bare,omitempty"`
	// Patient names the steps to which the controller may take long to react.
	Patient []string `json:"patient,omitempty"`
}

// Trial is the change of one field, with the two steps that make it and undo it.
type Trial struct {
	// Field is the path of the field, such as spec.template.replicas. An item of a list is [].
	Field string `json:"field"`
	// Verb says what happens to the field: change, add, add-to, remove, append, shorten, reorder,
	// switch, empty, zero, lowest or highest. If the verb is create, or one of these after create-, another
	// object is created with the value, and then deleted.
	Verb string `json:"verb"`
	// Value is the new value as JSON; it is empty if the field is removed.
	Value json.RawMessage `json:"value,omitempty"`
	// Step and Undo are the names of the steps. Then is the name of a step between them, which gives
	// a new field another value; it is empty if there is none.
	Step string `json:"step"`
	Then string `json:"then,omitempty"`
	Undo string `json:"undo"`
	// Mark begins the texts of a trial that is made in the same steps as others; no other trial has
	// them. It is empty if the steps change one field only.
	Mark string `json:"mark,omitempty"`
}

// Has reports whether a step belongs to the trial.
func (t *Trial) Has(step string) bool {
	return step == t.Step || step == t.Undo || step != "" && step == t.Then
}

// Creates reports whether the trial creates another object.
func (t *Trial) Creates() bool { return t.Verb == creates || strings.HasPrefix(t.Verb, createsWith) }

// createsWith begins the verb of a trial that creates another object with a change, such as create-empty.
const creates, createsWith = "create", "create-"

// Given describes the input in words, such as "spec.size was set to 0".
func (t *Trial) Given() string {
	value := string(t.Value)
	const most = 80
	if len(value) > most {
		value = value[:most] + "..."
	}
	switch {
	case t.Creates() && len(t.Value) == 0:
		return "another object was created without " + t.Field
	case t.Verb == creates:
		return fmt.Sprintf("another object was created with %s %s", t.Field, value)
	case t.Creates():
		return fmt.Sprintf("another object was created with %s set to %s", t.Field, value)
	case t.Verb == "remove":
		return t.Field + " was removed"
	}
	return fmt.Sprintf("%s was set to %s", t.Field, value)
}

// CreateStep is the name of the step that creates the object of a trial.
const CreateStep = "create"

// controls is the number of control steps before the trials: what the controller does in them, it
// does anyway.
const controls = 3

const (
	// mostTogether is the number of trials in one scenario. A controller that exits ends the
	// scenario, and the trials that are left need another one.
	mostTogether = 25
	// mostTrials is the maximum number of trials for one kind.
	mostTrials = 400
)

// touched is the annotation that a control step changes. The checker never compares annotations
// with this prefix; see state.Mark.
const touched = "check.koboshi.dev/touched"

// GenerateTrials makes trials for each sample of a kind that is reconciled: for each field of its
// schema that the API server lets a person change and change back. Objects with unusual names are
// created, too. A change that is made with one sample is only made with another one of the same kind
// in trials that are marked with Again, which come last. The returned scenarios alternate between the
// samples; within a sample, the most telling changes come first. The notes count what was left out.
// Equal arguments give equal results.
func GenerateTrials(samples []Sample, crds []*apiextensionsv1.CustomResourceDefinition, o GenerateOptions) ([]*Trials, []string, error) {
	g := newGenerator(samples, crds, o)
	g.thorough = true
	var groups, again [][]*Trials
	for _, s := range g.library {
		if !s.primary {
			continue
		}
		p, err := g.plot(s)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w", s.file, refOf(s.object.Object), err)
		}
		g.names[p.title+"-life"] = true         // so that the titles are those of Generate
		if p.kind.refusal(p.base, nil) == nil { // Generate notes a sample that does not match its schema
			first, other := p.trials()
			groups, again = append(groups, first), append(again, append(other, p.switchedOn()...))
		}
	}
	return append(ByTurns(groups), ByTurns(again)...), g.notes, nil
}

// trials returns the trials of one sample, and those that another sample has as well.
func (p *plot) trials() (all, again []*Trials) {
	var changes, others []change
	impossible, cut := 0, false
	named := !p.tried[p.kind.name+" names"]
	p.tried[p.kind.name+" names"] = true
	moves := p.moves()
	slices.SortStableFunc(moves, func(a, b move) int { return p.markRank(&a) - p.markRank(&b) })
	for _, m := range moves {
		made, _ := p.make(m, p.base)
		known := p.tried[p.kind.name+" "+m.String()]
		switch {
		case made == nil || p.kind.refusal(made.from, made.to) != nil:
			impossible++
		case known:
			others = append(others, *made)
		case p.counts[p.kind.name] >= mostTrials:
			cut = true
		default:
			p.tried[p.kind.name+" "+m.String()] = true
			p.counts[p.kind.name]++
			changes = append(changes, *made)
		}
	}
	if cut {
		p.note("%s: %s: some changes of fields are left out, because the maximum per kind is %d", p.sample.file, p.ref, mostTrials)
	}
	if impossible > 0 {
		p.note("%s: %s: %d changes of fields are left out, because the API server would refuse to make or to undo them", p.sample.file, p.ref, impossible)
	}
	marked := 0
	for marked < len(changes) && p.isMarkable(&changes[marked].move) {
		marked++
	}
	marks := p.marks(changes[:marked])
	for some := range slices.Chunk(mixed(changes, marked), mostTogether) {
		all = append(all, p.together(some))
	}
	if named { // soon, because a sample may have hundreds of fields
		all = slices.Insert(all, min(1, len(all)), p.oddNames())
	}
	return slices.Concat(marks, all, p.bare(changes)), p.repeats(others)
}

// repeats makes trials that are only made to confirm what others show.
func (p *plot) repeats(changes []change) (all []*Trials) {
	for some := range slices.Chunk(changes, mostTogether) {
		t := p.together(some)
		t.Again = true
		all = append(all, t)
	}
	return all
}

// switches matches the names of fields that switch on what the fields beside them describe.
var switches = regexp.MustCompile(`^(enabled?|create|active|install)$`)

// mostSwitches is the number of switches of a sample that are turned on, each for trials of its own.
const mostSwitches = 16

// switchedOn makes repetitions of the trials of fields that matter only if a switch beside them is on,
// such as the annotations of a Service that is not exposed.
func (p *plot) switchedOn() (all []*Trials) {
	n := 0
	for _, m := range p.moves() {
		if !m.turnsOn() || len(m.path) < 2 || n == mostSwitches {
			continue
		}
		base, ok := p.turnedOn(m.path)
		if !ok {
			continue
		}
		n++
		on := *p
		on.base = base
		within := move{path: m.path[:len(m.path)-1]}.field() + "."
		var changes []change
		for _, other := range on.moves() {
			made, _ := on.make(other, base)
			if strings.HasPrefix(other.field(), within) && other.field() != m.field() && made != nil && p.kind.refusal(made.from, made.to) == nil {
				changes = append(changes, *made)
			}
		}
		all = append(all, on.repeats(changes)...)
	}
	return all
}

// turnedOn returns the sample with a switch turned on, and all switches beside the objects around it.
func (p *plot) turnedOn(path []any) (map[string]any, bool) {
	base, ok := with(p.kind.schema, p.base, path, true)
	for n := 1; ok && n < len(path)-1; n++ {
		s := schemaAt(p.kind.schema, path[:n])
		for _, name := range sortedKeys(s.Properties) {
			if property := s.Properties[name]; isSwitch(name, &property) {
				base, ok = with(p.kind.schema, base, append(slices.Clone(path[:n]), name), true)
			}
		}
	}
	return base, ok && p.kind.refusal(base, nil) == nil
}

// beginning returns the frame of trials with the sample, the steps before the first change, and the names
// of these steps.
func (p *plot) beginning() (t *Trials, steps []Step, used map[string]bool) {
	t, steps, used = p.noTrials(), []Step{p.create(CreateStep)}, map[string]bool{}
	for i := range controls {
		name := fmt.Sprintf("touch-%d", i+1)
		steps = append(steps, Step{Name: name, Patch: touch(p.ref, name)})
		t.Controls = append(t.Controls, name)
		used[name] = true
	}
	return t, steps, used
}

// together makes one scenario of changes.
func (p *plot) together(changes []change) *Trials {
	t, steps, used := p.beginning()
	for _, c := range changes {
		name := unused(c.title(), used)
		before := c.from
		if c.path[0] == "metadata" { // the controller may have added labels of its own, which must stay
			before, _ = with(p.kind.schema, c.from, c.path, orEmpty(c.from, c.path))
		}
		trial := Trial{Field: c.field(), Verb: c.verb, Step: name, Undo: undoPrefix + name}
		steps = append(steps, p.patch(name, c.from, c.to))
		last := c.to
		if other := p.then(c); other != nil {
			trial.Then = "then-" + name
			steps, last = append(steps, p.patch(trial.Then, c.to, other)), other
		}
		steps = append(steps, p.patch(trial.Undo, last, before))
		if value, found := valueAt(c.to, c.path); found {
			trial.Value = mustJSON(value)
		}
		t.Trials = append(t.Trials, trial)
	}
	p.add("inputs", "Created, then each field changed and changed back.", steps...)
	t.Scenario, t.Twin = p.scenarios[len(p.scenarios)-1], p.withOtherName().object
	return t
}

// then returns the object with another value of a field that the change has added, or nil. A controller
// may use a field only when it creates a child.
func (p *plot) then(c change) map[string]any {
	value, found := valueAt(c.to, c.path)
	s := schemaAt(p.kind.schema, c.path)
	if c.verb != "add" || !found || s == nil {
		return nil
	}
	for _, other := range others(s, lastName(c.path), value) {
		to, ok := with(p.kind.schema, c.to, c.path, other)
		if ok && p.kind.refusal(to, c.to) == nil && p.kind.refusal(c.from, to) == nil {
			return to
		}
	}
	return nil
}

// schemaAt returns the schema of the value at a path, or nil.
func schemaAt(s *apiextensionsv1.JSONSchemaProps, path []any) *apiextensionsv1.JSONSchemaProps {
	for _, part := range path {
		name, isText := part.(string)
		child, known := s.Properties[name]
		switch {
		case !isText:
			s = listItem(s)
		case known:
			s = &child
		default:
			s = mapValue(s)
		}
		if s == nil {
			return nil
		}
	}
	return s
}

// noTrials returns the frame of trials with the sample.
func (p *plot) noTrials() *Trials {
	t := &Trials{Title: p.title, Object: p.ref, KindGroup: p.kind.name}
	t.Object.Namespace = "" // as in the store, unlike in a sample
	if p.kind.namespaced {
		t.Object.Namespace = inDefault(p.ref.Namespace)
	}
	return t
}

// oddNames makes trials that create the object of the sample under names that the API server allows,
// but that cannot be names of Services, labels, or parts of longer names.
func (p *plot) oddNames() *Trials {
	t := p.noTrials()
	deletion := p.delete("delete")
	deletion.Delete.Keep = true // the other objects need not wait for it
	steps := []Step{p.create(CreateStep), deletion}
	for _, name := range []string{"1-" + p.ref.Name, p.ref.Name + ".b", padded(p.ref.Name, 63), padded(p.ref.Name, 253)} {
		if len(name) > 253 {
			continue
		}
		ref := p.ref
		ref.Name = name
		trial := Trial{Field: "metadata.name", Verb: creates, Value: mustJSON(name), Step: fmt.Sprintf("name-%d", len(t.Trials)+1)}
		trial.Undo = undoPrefix + trial.Step
		steps = append(steps, Step{Name: trial.Step, Apply: []Manifest{{Object: renamed(p.base, name)}}}, Step{Name: trial.Undo, Delete: &Delete{ObjectRef: ref, Keep: true}})
		t.Trials = append(t.Trials, trial)
	}
	p.add("names", "Created under unusual names.", steps...)
	t.Scenario = p.scenarios[len(p.scenarios)-1]
	return t
}

// padded extends a name to the given length.
func padded(name string, length int) string {
	return name + strings.Repeat("b", max(0, length-len(name)))
}

// From returns the trials from the given number on, in a scenario of their own. It returns nil if
// none are left.
func (t *Trials) From(first int) *Trials {
	if first >= len(t.Trials) {
		return nil
	}
	return t.Some(func(i int, _ *Trial) bool { return i >= first })
}

// Some returns the selected trials, in a scenario of their own. It returns nil if none are selected.
func (t *Trials) Some(selected func(i int, one *Trial) bool) *Trials {
	some := *t
	some.Trials = nil
	for i := range t.Trials {
		if selected(i, &t.Trials[i]) {
			some.Trials = append(some.Trials, t.Trials[i])
		}
	}
	if len(some.Trials) == 0 {
		return nil
	}
	some.Scenario = t.only(t.Scenario.Name, some.Controls, some.Trials)
	return &some
}

// Proof returns two trials of which the second begins before the first is undone. If the effect of the
// second arrives, the controller has seen the first change as well, and has not merely been busy. It
// returns nil if the two changes could affect each other.
func (t *Trials) Proof(i, known int) *Trials {
	if overlap(t.Trials[i].Field, t.Trials[known].Field) {
		return nil
	}
	first, second := t.Trials[i], t.Trials[known]
	proof := *t
	proof.Trials = []Trial{first, second}
	proof.Scenario = t.only(t.Scenario.Name, t.Controls, proof.Trials)
	order := []string{first.Step, first.Then, second.Step, second.Then, first.Undo, second.Undo}
	slices.SortStableFunc(proof.Scenario.Steps, func(a, b Step) int {
		return slices.Index(order, a.Name) - slices.Index(order, b.Name)
	})
	return &proof
}

// overlap reports whether a change of one field may contain the other: one lies in the other, or both
// lie in the same list, which a patch replaces.
func overlap(a, b string) bool {
	a, _, _ = strings.Cut(a, "[")
	b, _, _ = strings.Cut(b, "[")
	return nested(a, b)
}

// nested reports whether one of two fields is the other, or lies in it.
func nested(a, b string) bool {
	return strings.HasPrefix(a+".", b+".") || strings.HasPrefix(b+".", a+".")
}

// Only returns a scenario with one trial, which starts from the unchanged object. Once the change is
// undone, the state must be the same as before it.
func (t *Trials) Only(i int) *Scenario {
	one := t.Trials[i]
	s := t.only(t.nameOf("input", &one), nil, t.Trials[i:i+1])
	if !one.Creates() {
		s.Steps[len(s.Steps)-1].SameAs = CreateStep
	}
	return s
}

// nameOf returns the name of a scenario with one trial. It contains the field, and does not depend on the
// other trials.
func (t *Trials) nameOf(what string, one *Trial) string {
	const most = 63 - 7 // a DNS label, without the digest
	digest := sha256.Sum256([]byte(t.KindGroup + " " + one.Verb + " " + one.Field + " " + string(one.Value)))
	name := label(t.Title + "-" + what + "-" + one.Step)
	return strings.TrimRight(name[:min(len(name), most)], "-") + "-" + hex.EncodeToString(digest[:3])
}

// Single returns the trial with number i, in the scenario that Only returns.
func (t *Trials) Single(i int) *Trials {
	single := *t
	single.Scenario, single.Controls, single.Trials = t.Only(i), nil, t.Trials[i:i+1]
	return &single
}

// Unchanged returns the same trials with steps that only make the controller reconcile.
func (t *Trials) Unchanged() *Trials {
	unchanged, s := *t, *t.Scenario
	s.Steps = slices.Clone(s.Steps)
	for i := range s.Steps {
		if step := &s.Steps[i]; step.Patch != nil && slices.ContainsFunc(t.Trials, func(one Trial) bool { return one.Has(step.Name) }) {
			step.Patch = touch(step.Patch.ObjectRef, step.Name)
		}
	}
	unchanged.Scenario = &s
	return &unchanged
}

// touch returns a patch that changes only an annotation, to a value of its own.
func touch(ref ObjectRef, value string) *Patch {
	change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{touched: value}}}
	return &Patch{ObjectRef: ref, Merge: mustJSON(change)}
}

// Deleted returns a scenario in which the object is deleted twice: unchanged, and after the change with number i.
// If the change only creates another object, that one is deleted last. Nothing may happen for the time quiet
// after the last deletion. The result has no trials, because nothing is changed back.
func (t *Trials) Deleted(i int, quiet time.Duration) *Trials {
	s := t.Only(i)
	one := &t.Trials[i]
	s.Name = t.nameOf("deleted", one)
	if !one.Creates() {
		create, again := s.Steps[0], s.Steps[0]
		again.Name = "create-again"
		s.Steps = []Step{create, {Name: "delete", Delete: &Delete{ObjectRef: t.Object}}, again, *t.step(one.Step),
			{Name: "delete-changed", Delete: &Delete{ObjectRef: t.Object, Keep: true}}}
	}
	s.Steps[len(s.Steps)-1].Quiet = Duration(quiet)
	deleted := *t
	deleted.Scenario, deleted.Controls, deleted.Trials = s, nil, nil
	return &deleted
}

func (t *Trials) only(name string, controls []string, trials []Trial) *Scenario {
	s := *t.Scenario
	s.Name = name
	s.Steps = slices.DeleteFunc(slices.Clone(s.Steps), func(st Step) bool {
		return st.Name != CreateStep && st.Name != "delete" && !slices.Contains(controls, st.Name) &&
			!slices.ContainsFunc(trials, func(t Trial) bool { return t.Has(st.Name) })
	})
	return &s
}

// orEmpty returns the map at a path, or an empty one.
func orEmpty(object map[string]any, path []any) map[string]any {
	value, _ := valueAt(object, path)
	if found, ok := value.(map[string]any); ok {
		return found
	}
	return map[string]any{}
}

// valueAt returns the value at a path.
func valueAt(value any, path []any) (any, bool) {
	for _, part := range path {
		switch at := part.(type) {
		case string:
			object, _ := value.(map[string]any)
			inner, found := object[at]
			if !found {
				return nil, false
			}
			value = inner
		case int:
			items, _ := value.([]any)
			if at >= len(items) {
				return nil, false
			}
			value = items[at]
		}
	}
	return value, true
}

// read adds copies of the objects of samples to the library.
func (g *generator) read(samples []Sample) {
	for _, sample := range samples {
		for _, object := range sample.Objects {
			if object.GetName() == "" {
				g.note("%s: left out a %s without a name", sample.File, object.GetKind())
				continue
			}
			copied := unstructured.Unstructured{Object: wholeNumbers(runtime.DeepCopyJSON(object.Object)).(map[string]any)}
			g.library = append(g.library, &sampled{file: sample.File, object: copied, primary: g.primary(object.Object)})
		}
	}
}
