package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"time"
)

// Labels and annotations are passed on, and seldom do anything else. So those of a sample are changed in the
// same steps, each with a text of its own, which shows where it arrives. That takes three steps
// instead of three for each field.

var (
	// passedOn matches the names of maps whose texts can be told apart wherever they arrive, and labelling
	// those of labels.
	passedOn  = regexp.MustCompile(`(?i)(labels|annotations)$`)
	labelling = regexp.MustCompile(`(?i)labels$`)
	// selecting matches the names of fields that select objects instead.
	selecting = regexp.MustCompile(`(?i)selector|match`)
)

// fewestMarks is the number of fields from which marks take less time than trials of single fields.
const fewestMarks = 2

// Marks reports whether all trials are made in the same steps.
func (t *Trials) Marks() bool { return len(t.Trials) > 0 && t.Trials[0].Mark != "" }

// Alone reports whether each trial has steps of its own.
func (t *Trials) Alone() bool { return !t.Marks() && !t.Bare }

// FirstMark and SecondMark return the two texts that the field of a trial gets, one after the other.
func (t *Trial) FirstMark() string { return t.Mark + "-a" }

// SecondMark returns the second of the two texts.
func (t *Trial) SecondMark() string { return t.Mark + "-b" }

// isMarkable reports whether the move adds a text to labels or annotations.
func (p *plot) isMarkable(m *move) bool {
	s := schemaAt(p.kind.schema, m.path)
	for _, part := range m.path {
		if name, isText := part.(string); isText && selecting.MatchString(name) {
			return false
		}
	}
	switch {
	case m.verb != "add" && m.verb != "add-to" || !passedOn.MatchString(lastName(m.path)):
		return false
	case m.path[0] == "metadata":
		return true
	}
	return s != nil && mapValue(s) != nil && mapValue(s).Type == "string"
}

// markRank orders the fields that can be marked before all others.
func (p *plot) markRank(m *move) int {
	if p.isMarkable(m) {
		return 0
	}
	return 1
}

// mixed returns the changes with some of the others after each few that can be marked, which come first: a
// field without an effect is confirmed with one of the same scenario whose effect is known.
func mixed(changes []change, marked int) (all []change) {
	const others = 5
	rest := changes[marked:]
	for some := range slices.Chunk(changes[:marked], mostTogether-others) {
		n := min(others, len(rest))
		all = append(append(all, some...), rest[:n]...)
		rest = rest[n:]
	}
	return append(all, rest...)
}

// marks makes trials of labels and annotations. Labels have trials of their own, because some get into a
// selector that must not change, and then the controller may do nothing else. So have those in objects that
// the sample lacks, because such an object may have an effect of its own.
func (p *plot) marks(changes []change) (all []*Trials) {
	var groups [4][]change
	for _, c := range changes {
		n := 0
		if labelling.MatchString(lastName(c.path)) {
			n++
		}
		if _, found := valueAt(p.base, c.path[:len(c.path)-1]); !found {
			n += 2
		}
		groups[n] = append(groups[n], c)
	}
	for _, some := range groups {
		if t := p.mark(some); t != nil {
			all = append(all, t)
		}
	}
	return all
}

// mark makes one scenario in which all fields get a text, then another one, and then lose it. It returns
// nil if that is of no use, or if the API server would refuse it.
func (p *plot) mark(changes []change) *Trials {
	const step, then = "mark", "then-mark"
	first, second, before := p.base, p.base, p.base
	t, steps, _ := p.beginning()
	for _, c := range changes {
		trial := Trial{Field: c.field(), Verb: c.verb, Mark: fmt.Sprintf("koboshi-m%03d", len(t.Trials)+1), Step: step, Then: then, Undo: undoPrefix + step}
		one, ok := p.marked(first, c.path, trial.Mark, trial.FirstMark())
		two, okToo := p.marked(second, c.path, trial.Mark, trial.SecondMark())
		if !ok || !okToo {
			continue
		}
		first, second = one, two
		if c.path[0] == "metadata" { // the controller may have added labels of its own, which must stay
			before, _ = with(p.kind.schema, before, c.path, orEmpty(before, c.path))
		}
		trial.Value = mustJSON(map[string]any{trial.Mark: trial.FirstMark()})
		t.Trials = append(t.Trials, trial)
	}
	if len(t.Trials) < fewestMarks || p.kind.refusal(first, p.base) != nil || p.kind.refusal(second, first) != nil || p.kind.refusal(p.base, second) != nil {
		return nil
	}
	steps = append(steps, p.patch(step, p.base, first), p.patch(then, first, second), p.patch(undoPrefix+step, second, before))
	p.add("marks", "Created, then all labels and annotations changed, and changed back.", steps...)
	t.Scenario = p.scenarios[len(p.scenarios)-1]
	return t
}

// marked returns the object with one more text in the map at a path.
func (p *plot) marked(object map[string]any, path []any, key, text string) (map[string]any, bool) {
	value := maps.Clone(orEmpty(object, path))
	value[key] = text
	if s := schemaAt(p.kind.schema, path); s != nil && mapValue(s) != nil && !fits(mapValue(s), text) {
		return nil, false
	}
	return with(p.kind.schema, object, path, value)
}

// Waiting returns the same trials, with steps that last until nothing has been written for the given time.
func (t *Trials) Waiting(quiet time.Duration) *Trials {
	waiting, s := *t, *t.Scenario
	s.Steps = slices.Clone(s.Steps)
	for i := range s.Steps {
		if slices.ContainsFunc(t.Trials, func(one Trial) bool { return one.Has(s.Steps[i].Name) }) {
			s.Steps[i].Quiet = max(s.Steps[i].Quiet, Duration(quiet))
		}
	}
	waiting.Scenario = &s
	return &waiting
}

// PatientIn returns the same trials, with more time for the controller to react to the given steps.
func (t *Trials) PatientIn(steps ...string) *Trials {
	patient := *t
	patient.Patient = steps
	return &patient
}

// Back returns the same trials, which must be marks, in a scenario after which all should be as before.
func (t *Trials) Back() *Trials {
	back, s := *t, *t.Scenario
	s.Steps = slices.Clone(s.Steps)
	s.Steps[len(s.Steps)-1].SameAs = CreateStep
	back.Scenario = &s
	return &back
}
