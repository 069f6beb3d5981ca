package scenario

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// plot generates the scenarios for one sample.
type plot struct {
	*generator
	sample *sampled
	kind   *customKind
	ref    ObjectRef
	base   map[string]any
	given  []Manifest
	title  string
	random *rand.Rand
	// twins holds renamed copies of given objects, by name. A scenario can replace a
	// reference to a given object with a reference to its copy. renamed maps the name of a
	// given object to the name of its twin.
	twins   map[string]Manifest
	renamed map[string]string

	// refused describes the changes that the server does not accept, with the reasons.
	refused []string

	// made holds the changes that are possible on the unchanged sample. Scenarios that need
	// a change take it from made.
	made []change
}

// change is a move with the objects before and after it.
type change struct {
	move
	from, to map[string]any
}

// add makes a scenario from the steps.
func (p *plot) add(name, description string, steps ...Step) {
	s := &Scenario{
		APIVersion: APIVersion, Kind: Kind,
		Name:        unused(p.title+"-"+name, p.names),
		Description: fmt.Sprintf("%s, from %s. %s", p.ref, p.sample.file, description),
		Sample:      p.sample.file,
		Steps:       steps,
	}
	for _, m := range p.given {
		s.Given = append(s.Given, Manifest{Object: runtime.DeepCopyJSON(m.Object)})
	}
	for _, name := range sortedKeys(p.twins) {
		if uses(steps, name) {
			s.Given = append(s.Given, p.twins[name])
		}
	}
	p.scenarios = append(p.scenarios, s)
}

// addSeeded makes a scenario with changes in an order that depends on the seed.
func (p *plot) addSeeded(name, description string, steps ...Step) {
	p.add(name, description, steps...)
	p.scenarios[len(p.scenarios)-1].Seeded = true
}

// uses reports whether a patch in the steps contains the name.
func uses(steps []Step, name string) bool {
	return slices.ContainsFunc(steps, func(st Step) bool {
		if st.Patch == nil {
			return false
		}
		found := false
		value, _ := fromJSON(st.Patch.Merge)
		eachString(value, func(text string) { found = found || text == name })
		return found
	})
}

func (p *plot) create(name string) Step {
	return Step{Name: name, Apply: []Manifest{{Object: runtime.DeepCopyJSON(p.base)}}}
}

func (p *plot) delete(name string) Step {
	return Step{Name: name, Delete: &Delete{ObjectRef: p.ref}}
}

func (p *plot) patch(name string, from, to map[string]any) Step {
	return Step{Name: name, Patch: &Patch{ObjectRef: p.ref, Merge: mustJSON(mergePatch(from, to))}}
}

func (st Step) same(as string) Step {
	st.SameAs = as
	return st
}

func (st Step) down() Step {
	st.WhileDown = true
	return st
}

func (p *plot) again() {
	p.add("again", "Created, deleted, and created again under the same name.",
		p.create("create"), p.delete("delete"), p.create("create-again").same("create"), p.delete("delete-again").same("delete"))
}

// changes makes as many scenarios as the moves need. The changes in a scenario accumulate.
// A move that is impossible after the earlier moves is left for the next scenario. A move
// that is impossible on the sample itself is dropped.
func (p *plot) changes() {
	defer p.noteRefused()
	queue := p.queue()
	for len(queue) > 0 && p.counts[p.kind.name] < p.options.MostChanges {
		var steps []Step
		var taken []move
		steps, taken, queue = p.chapter(queue)
		if len(steps) == 0 {
			return
		}
		p.addSeeded("change", "Created, then one field changed after another: "+list(taken)+".", append([]Step{p.create("create")}, steps...)...)
	}
	if len(queue) > 0 {
		p.note("%s: %s: left out %d changes, because the maximum per kind is %d", p.sample.file, p.ref, len(queue), p.options.MostChanges)
		for _, m := range queue {
			p.keep(m)
		}
	}
}

// mostRefused is the number of refused changes of a sample that are noted one by one.
const mostRefused = 2

// noteRefused notes the changes that the server does not accept for the sample. A list of
// immutable fields can be long, and would hide the other notes.
func (p *plot) noteRefused() {
	if n := len(p.refused); n > mostRefused {
		p.note("%s: %s: left out %d changes that the API server would refuse, such as %s", p.sample.file, p.ref, n, p.refused[0])
		return
	}
	for _, change := range p.refused {
		p.note("%s: %s: left out %s", p.sample.file, p.ref, change)
	}
}

// chapter takes moves for one scenario from the queue, and returns the remaining moves.
func (p *plot) chapter(queue []move) (steps []Step, taken, left []move) {
	now, used, full := p.base, map[string]bool{}, false
	for i, m := range queue {
		if full || p.counts[p.kind.name] >= p.options.MostChanges {
			return steps, taken, append(left, queue[i:]...)
		}
		made, why := p.make(m, now)
		switch {
		case made != nil:
			steps = append(steps, p.patch(unused(m.title(), used), made.from, made.to))
			taken, now = append(taken, m), made.to
			p.tried[p.kind.name+" "+m.String()] = true
			p.counts[p.kind.name]++
			p.keep(m)
			// If this step cuts the controller off from a server, further steps would
			// reveal nothing.
			full = len(steps) == p.options.MostFields || m.severs()
		case len(steps) == 0:
			p.refused = append(p.refused, fmt.Sprintf("%s: %s", m, why))
		default:
			left = append(left, m)
		}
	}
	return steps, taken, left
}

// queue returns the moves that have not yet been made with another sample of the same
// kind.
func (p *plot) queue() []move {
	var queue []move
	for _, m := range p.moves() {
		if p.tried[p.kind.name+" "+m.String()] {
			// Scenarios that need some change, no matter which, can use this move.
			p.keep(m)
			continue
		}
		queue = append(queue, m)
	}
	return queue
}

// moves returns all moves of the sample.
func (p *plot) moves() []move {
	moves, notes := explore(p.kind, p.base, p.random, p.thorough)
	for _, n := range notes {
		if key := p.kind.name + " note " + n; !p.tried[key] {
			p.tried[key] = true
			p.note("%s: %s", p.kind.name, n)
		}
	}
	for i := range moves {
		p.rename(&moves[i])
	}
	return moves
}

// rename inserts the name of the twin as the first value, if the move changes a reference
// to a given object.
func (p *plot) rename(m *move) {
	if m.verb != "change" || !reference.MatchString(lastName(m.path)) {
		return
	}
	if twin, has := p.renamed[textAt(p.base, m.path)]; has {
		m.values = append([]any{twin}, m.values...)
	}
}

func textAt(value any, path []any) string {
	found, _ := valueAt(value, path)
	text, _ := found.(string)
	return text
}

// make returns the change that the move makes to the given object, with the first value that the
// server accepts. If the server accepts no value, make returns the reason.
func (p *plot) make(m move, now map[string]any) (*change, string) {
	why := ""
	for _, value := range m.values {
		to, ok := with(p.kind.schema, now, m.path, value)
		if !ok || len(mergePatch(now, to)) == 0 {
			continue
		}
		err := p.kind.refusal(to, now)
		if err == nil {
			return &change{m, now, to}, ""
		}
		if why == "" {
			why = err.Error()
		}
	}
	return nil, cmp.Or(why, "there is nothing to change")
}

// keep stores a move that can be undone, for the scenarios NAME-back and NAME-down.
func (p *plot) keep(m move) {
	made, _ := p.make(m, p.base)
	if made != nil && p.kind.refusal(made.from, made.to) == nil {
		p.made = append(p.made, *made)
	}
}

func list(moves []move) string {
	var all []string
	for _, m := range moves {
		all = append(all, m.String())
	}
	return strings.Join(all, ", ")
}

// back makes a scenario that changes fields one by one, and changes each back immediately.
// It prefers moves with different verbs.
func (p *plot) back() {
	var chosen []change
	verbs := map[string]bool{}
	for _, other := range []bool{true, false} {
		for _, c := range p.made {
			taken := slices.ContainsFunc(chosen, func(t change) bool { return t.String() == c.String() })
			if len(chosen) < p.options.MostBack && !taken && verbs[c.verb] != other {
				verbs[c.verb] = true
				chosen = append(chosen, c)
			}
		}
	}
	if len(chosen) == 0 {
		return
	}
	steps, used := []Step{p.create("create")}, map[string]bool{}
	for _, c := range chosen {
		name := unused(c.title(), used)
		steps = append(steps, p.patch(name, c.from, c.to), p.patch(undoPrefix+name, c.to, c.from).same("create"))
	}
	p.addSeeded("back", "Created, then fields changed and changed back.", steps...)
}

// scale makes a scenario that scales up, down and back.
func (p *plot) scale() {
	if p.kind.replicas == "" {
		return
	}
	path := p.kind.replicasPath()
	s := p.kind.at(path)
	if s == nil {
		p.note("%s: not scaled, because the scale subresource names %s, which the schema lacks", p.kind.name, p.kind.replicas)
		return
	}
	first, explicit := unstructuredInt(p.kind.defaulted(p.base), path)
	step := func(name string, replicas int64) Step {
		return Step{Name: name, Scale: &Scale{ObjectRef: p.ref, Replicas: int32(replicas)}}
	}
	steps := []Step{p.create("create")}
	if p.fitsReplicas(s, first+1) {
		steps = append(steps, step("up", first+1))
	}
	if first > 0 && p.fitsReplicas(s, first-1) {
		steps = append(steps, step("down", first-1))
	}
	if len(steps) == 1 {
		p.note("%s: %s: not scaled, because the schema only allows %d replicas", p.sample.file, p.ref, first)
		return
	}
	home := step("home", first)
	if explicit {
		home = home.same("create")
	}
	p.add("scale", "Created, then scaled up, down and back.", append(steps, home)...)
}

func (p *plot) fitsReplicas(s *apiextensionsv1.JSONSchemaProps, replicas int64) bool {
	path := p.kind.replicasPath()
	at := make([]any, len(path))
	for i, part := range path {
		at[i] = part
	}
	to, ok := with(p.kind.schema, p.base, at, replicas)
	return fits(s, replicas) && ok && p.kind.refusal(to, p.base) == nil
}

// unstructuredInt returns the number at the path, or 1 and false if there is none.
func unstructuredInt(object map[string]any, path []string) (int64, bool) {
	n, found, err := unstructured.NestedInt64(object, path...)
	if err != nil || !found {
		return 1, false
	}
	return n, true
}

// down makes a scenario that first performs actions while the controller runs, and then repeats
// them while the controller is stopped.
func (p *plot) down() {
	steps := []Step{p.create("create"), p.delete("delete"), p.create("create-again")}
	if len(p.made) > 0 {
		c := p.made[0]
		name := c.title()
		steps = append(steps,
			p.patch(name, c.from, c.to), p.patch(undoPrefix+name, c.to, c.from).same("create-again"),
			p.patch(name+"-down", c.from, c.to).same(name).down(), p.patch(undoPrefix+name+"-down", c.to, c.from).same("create-again"))
	}
	p.addSeeded("down", "Changed and deleted while the controller runs, and again while it is down.",
		append(steps, p.delete("delete-down").same("delete").down())...)
}
