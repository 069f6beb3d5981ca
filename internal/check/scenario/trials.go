package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
}

// Trial is the change of one field, with the two steps that make it and undo it.
type Trial struct {
	// Field is the path of the field, such as spec.template.replicas. An item of a list is [].
	Field string `json:"field"`
	// Verb says what happens to the field: change, add, add-to, remove, append, shorten, reorder,
	// empty, zero, lowest or highest.
	Verb string `json:"verb"`
	// Value is the new value as JSON; it is empty if the field is removed.
	Value json.RawMessage `json:"value,omitempty"`
	// Step and Undo are the names of the steps.
	Step string `json:"step"`
	Undo string `json:"undo"`
}

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
// schema that the API server lets a person change and change back. A change that is made with one
// sample is not made with another one of the same kind. The returned scenarios alternate between
// the samples; within a sample, the most telling changes come first. The notes count what was left
// out. Equal arguments give equal results.
func GenerateTrials(samples []Sample, crds []*apiextensionsv1.CustomResourceDefinition, o GenerateOptions) ([]*Trials, []string, error) {
	g := newGenerator(samples, crds, o)
	g.thorough = true
	var groups [][]*Trials
	for _, s := range g.library {
		if !s.primary {
			continue
		}
		p, err := g.plot(s)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w", s.file, refOf(s.object.Object), err)
		}
		if p.kind.refusal(p.base, nil) == nil { // Generate notes a sample that does not match its schema
			groups = append(groups, p.trials())
		}
	}
	return byTurns(groups), g.notes, nil
}

// trials returns the trials of one sample.
func (p *plot) trials() (all []*Trials) {
	var changes []change
	impossible := 0
	for _, m := range p.queue() {
		if p.counts[p.kind.name] >= mostTrials {
			p.note("%s: %s: some changes of fields are left out, because the maximum per kind is %d", p.sample.file, p.ref, mostTrials)
			break
		}
		made, _ := p.make(m, p.base)
		if made == nil || p.kind.refusal(made.from, made.to) != nil {
			impossible++
			continue
		}
		p.tried[p.kind.name+" "+m.String()] = true
		p.counts[p.kind.name]++
		changes = append(changes, *made)
	}
	if impossible > 0 {
		p.note("%s: %s: %d changes of fields are left out, because the API server would refuse to make or to undo them", p.sample.file, p.ref, impossible)
	}
	for some := range slices.Chunk(changes, mostTogether) {
		all = append(all, p.together(some))
	}
	return all
}

// together makes one scenario of changes.
func (p *plot) together(changes []change) *Trials {
	t := &Trials{Title: p.title, Object: p.ref, KindGroup: p.kind.name}
	t.Object.Namespace = "" // as in the store, unlike in a sample
	if p.kind.namespaced {
		t.Object.Namespace = inDefault(p.ref.Namespace)
	}
	steps, used := []Step{p.create("create")}, map[string]bool{}
	for i := range controls {
		name := fmt.Sprintf("touch-%d", i+1)
		touch := map[string]any{"metadata": map[string]any{"annotations": map[string]any{touched: name}}}
		steps = append(steps, Step{Name: name, Patch: &Patch{ObjectRef: p.ref, Merge: mustJSON(touch)}})
		t.Controls = append(t.Controls, name)
		used[name] = true
	}
	for _, c := range changes {
		name := unused(c.title(), used)
		steps = append(steps, p.patch(name, c.from, c.to), p.patch(undoPrefix+name, c.to, c.from))
		trial := Trial{Field: c.field(), Verb: c.verb, Step: name, Undo: undoPrefix + name}
		if value, found := valueAt(c.to, c.path); found {
			trial.Value = mustJSON(value)
		}
		t.Trials = append(t.Trials, trial)
	}
	p.add("inputs", "Created, then each field changed and changed back.", steps...)
	t.Scenario = p.scenarios[len(p.scenarios)-1]
	return t
}

// From returns the trials from the given number on, in a scenario of their own. It returns nil if
// none are left.
func (t *Trials) From(first int) *Trials {
	if first >= len(t.Trials) {
		return nil
	}
	rest := *t
	rest.Trials = t.Trials[first:]
	rest.Scenario = t.only(t.Scenario.Name, rest.Controls, rest.Trials)
	return &rest
}

// Only returns a scenario with one trial, which starts from the unchanged object. The name of the
// scenario contains the field, and does not depend on the other trials.
func (t *Trials) Only(i int) *Scenario {
	const most = 63 - 7 // a DNS label, without the digest
	one := t.Trials[i]
	digest := sha256.Sum256([]byte(t.KindGroup + " " + one.Verb + " " + one.Field))
	name := label(t.Title + "-input-" + one.Step)
	name = strings.TrimRight(name[:min(len(name), most)], "-") + "-" + hex.EncodeToString(digest[:3])
	return t.only(name, nil, t.Trials[i:i+1])
}

// Single returns one of the trials, with the control steps, as trials of their own.
func (t *Trials) Single(i int) *Trials {
	one := *t
	one.Trials = t.Trials[i : i+1]
	one.Scenario = t.only(t.Scenario.Name, t.Controls, one.Trials)
	return &one
}

func (t *Trials) only(name string, controls []string, trials []Trial) *Scenario {
	s := *t.Scenario
	s.Name = name
	s.Steps = slices.DeleteFunc(slices.Clone(s.Steps), func(st Step) bool {
		return st.Patch != nil && !slices.Contains(controls, st.Name) && !slices.ContainsFunc(trials, func(t Trial) bool { return t.Step == st.Name || t.Undo == st.Name })
	})
	return &s
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
