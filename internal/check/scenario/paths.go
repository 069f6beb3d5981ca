package scenario

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// GeneratePaths makes these scenarios for one sample of each kind that is reconciled. They are run
// without faults: they ask whether it matters on which way a state is reached.
//
//	NAME-two-names       two resources in one namespace; each of them is deleted while the other exists
//	NAME-two-namespaces  the same with two resources of the same name in two namespaces
//	NAME-direct          created in a changed form; and created as it is, and then changed
//	NAME-pods            created; then its Pods are not ready, crash, and are ready again; created again
//	                     while no Pod can start
//	NAME-features        created; then several features are switched on, and off again together
//	NAME-namespace       created and deleted; and created, and its namespace deleted
//
// The sample with the most fields is used. The scenarios are ordered by how often they find bugs, and
// alternate between the kinds. Equal arguments give equal results.
func GeneratePaths(samples []Sample, crds []*apiextensionsv1.CustomResourceDefinition, o GenerateOptions) ([]*Scenario, []string, error) {
	g := newGenerator(samples, crds, o)
	richest := map[string]*plot{}
	for _, s := range g.library {
		if !s.primary {
			continue
		}
		p, err := g.plot(s)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %s: %w", s.file, refOf(s.object.Object), err)
		}
		g.names[p.title+"-life"] = true // as in Generate, so that titles are the same
		best := richest[p.kind.name]
		if p.kind.refusal(p.base, nil) == nil && (best == nil || leavesIn(p.base) > leavesIn(best.base)) {
			richest[p.kind.name] = p
		}
	}
	var groups [][]*Scenario
	for _, kind := range slices.Sorted(maps.Keys(richest)) {
		p := richest[kind]
		before := len(g.scenarios)
		p.pair("two-namespaces", "Two resources of the same name in two namespaces: created, and each of them deleted while the other exists.", p.inOtherNamespace)
		p.pair("two-names", "Two resources in one namespace: created, and each of them deleted while the other exists.", p.withOtherName)
		p.unhealthy()
		p.direct()
		p.features()
		p.namespaceDeleted()
		groups = append(groups, g.scenarios[before:])
	}
	return ByTurns(groups), g.notes, nil
}

// leavesIn counts the scalars in a value.
func leavesIn(value any) (n int) {
	switch v := value.(type) {
	case map[string]any:
		for _, inner := range v {
			n += leavesIn(inner)
		}
	case []any:
		for _, inner := range v {
			n += leavesIn(inner)
		}
	default:
		n = 1
	}
	return n
}

// sibling is a second resource with what it needs.
type sibling struct {
	object map[string]any
	given  []Manifest
}

// pair makes a scenario with two resources. What the controller makes for each of them alone is the
// standard for what must exist when both exist, and when the other one is deleted.
func (p *plot) pair(name, description string, other func() *sibling) {
	b := other()
	if b == nil {
		return
	}
	if err := p.kind.refusal(b.object, nil); err != nil {
		p.note("%s: %s: no scenario %s, because the API server would refuse the second resource: %v", p.sample.file, p.ref, name, err)
		return
	}
	apply := func(step string, object map[string]any, spares ...string) Step {
		return Step{Name: step, Apply: []Manifest{{Object: runtime.DeepCopyJSON(object)}}, Spares: spares}
	}
	remove := func(step string, object map[string]any, spares ...string) Step {
		return Step{Name: step, Delete: &Delete{ObjectRef: refOf(object)}, Spares: spares}
	}
	p.add(name, description,
		apply("second-alone", b.object), remove("second-gone", b.object),
		apply("first-alone", p.base), apply("both", b.object, "first-alone", "second-alone"),
		remove("without-second", b.object, "first-alone"), apply("both-again", b.object),
		remove("without-first", p.base, "second-alone"))
	s := p.scenarios[len(p.scenarios)-1]
	s.Given = append(s.Given, b.given...)
}

// schedulerQuiet is the quiet time after the nodes accept Pods again. The scheduler tries a Pod again after a
// pause of a second, or of two if it has failed twice.
const schedulerQuiet = 2500 * time.Millisecond

// unhealthy makes a scenario in which the Pods of the resource are not ready for a while, and in which they
// cannot start when the resource is created. Once they are ready, nothing may remind of that.
func (p *plot) unhealthy() {
	started := Step{Name: "started", PodHealth: PodsReady, SameAs: CreateStep, Quiet: Duration(schedulerQuiet)}
	p.add("pods", "Created; then its Pods are not ready, crash, and are ready again; created again while no Pod can start.",
		p.create(CreateStep), Step{Name: "unready", PodHealth: PodsUnready}, Step{Name: "crashing", PodHealth: PodsCrashing},
		Step{Name: "ready-again", PodHealth: PodsReady, SameAs: CreateStep}, p.delete("delete"),
		Step{Name: "full", PodHealth: PodsPending}, p.create("create-pending"), started, p.delete("delete-again").same("delete"))
}

// features makes a scenario in which several features are switched on one after the other, and off again
// together: optional sections are added, and booleans set. The inputs try each field alone. If a webhook
// refuses one of the features, the others are still tried; see IsDispensable.
func (p *plot) features() {
	taken, _, now := p.combine(slices.DeleteFunc(p.switches(), p.isOneWay))
	if len(taken) < 2 || p.kind.refusal(p.base, now) != nil {
		return
	}
	steps, used, at := []Step{p.create(CreateStep)}, map[string]bool{}, p.base
	for _, m := range taken {
		made, _ := p.make(m, at) // combine has made the same change
		steps = append(steps, p.patch(unused(m.title(), used), at, made.to))
		at = made.to
	}
	p.add("features", "Created; then several features switched on, and off again together: "+list(taken)+".",
		append(steps, p.patch("off", now, p.base).same(CreateStep), p.delete("delete"))...)
}

// isOneWay reports whether the API server does not accept that a move is undone.
func (p *plot) isOneWay(m move) bool {
	made, _ := p.make(m, p.base)
	return made == nil || p.kind.refusal(p.base, made.to) != nil
}

// IsDispensable reports whether a step makes one of several changes, with whose result nothing is compared.
// Without such a step, the others still show what they show.
func (s *Scenario) IsDispensable(name string) bool {
	return !slices.ContainsFunc(s.Steps, func(st Step) bool {
		compares := st.SameAs != "" || len(st.Spares) > 0
		return st.Name == name && (st.Patch == nil || compares) || st.SameAs == name || slices.Contains(st.Spares, name)
	})
}

// switches returns one move for each feature that the sample does not use. In a section that is added, a
// boolean is set if there is one, because it may be what the section depends on.
func (p *plot) switches() (switches []move) {
	queue := p.queue()
	slices.SortStableFunc(queue, func(a, b move) int { return strength(b) - strength(a) })
	var known [][]any
	for _, m := range queue {
		feature := m.feature(p.base)
		if feature == nil || slices.ContainsFunc(known, func(k []any) bool { return within(feature, k) || within(k, feature) }) {
			continue
		}
		known, switches = append(known, feature), append(switches, m)
	}
	return switches
}

func strength(m move) int {
	if on, _ := m.values[0].(bool); on {
		return 1
	}
	return 0
}

// feature returns the path of what a move switches on: a section that the object lacks, or a boolean. For
// any other move, it returns nil.
func (m move) feature(base map[string]any) []any {
	on, isBoolean := m.values[0].(bool)
	_, isSection := m.values[0].(map[string]any)
	if isBoolean && !on || m.verb == "remove" {
		return nil
	}
	for n := 2; n <= len(m.path); n++ { // below spec
		if _, there := valueAt(base, m.path[:n]); !there && (n < len(m.path) || isBoolean || isSection) {
			return m.path[:n]
		}
	}
	if isBoolean {
		return m.path
	}
	return nil
}

// mostDirect is the maximum number of scenarios NAME-direct for a kind, and mostCombined the number of fields
// that each of them changes. A webhook that refuses one of the changes prevents the whole scenario, so they are
// few.
const mostDirect, mostCombined = 3, 5

// direct makes scenarios that compare a resource that was created in a changed form with one that was
// changed to this form.
func (p *plot) direct() {
	fresh, used := p.queue(), []move{}
	for range mostDirect {
		if len(fresh) == 0 {
			return
		}
		// Other changes go with the removals, so that the controller updates the child.
		taken, left, now := p.combine(slices.Concat(fresh, used))
		if len(taken) == 0 {
			return
		}
		p.add("direct", "Created in a changed form and deleted; then created as it is, and changed: "+list(taken)+".",
			Step{Name: "create-changed", Apply: []Manifest{{Object: runtime.DeepCopyJSON(now)}}}, p.delete("delete"),
			p.create("create"), p.patch("change", p.base, now).same("create-changed"))
		// What is no longer declared is often left behind, so the next scenario begins with the removals.
		left = slices.DeleteFunc(left, func(m move) bool {
			return slices.ContainsFunc(used, func(u move) bool { return u.String() == m.String() })
		})
		slices.SortStableFunc(left, func(a, b move) int { return b.rank/rankRemove - a.rank/rankRemove })
		fresh, used = left, append(used, taken...)
	}
}

// combine makes as many moves as one scenario may have, in different fields, and returns those that it made,
// the others, and the changed object. The server must accept the object as a new one and as an update.
func (p *plot) combine(queue []move) (taken, left []move, now map[string]any) {
	now = p.base
	for _, m := range queue {
		overlaps := slices.ContainsFunc(taken, func(t move) bool { return within(t.path, m.path) || within(m.path, t.path) })
		if overlaps || len(taken) == mostCombined {
			left = append(left, m)
			continue
		}
		if m.severs() || len(m.path) < 2 {
			continue
		}
		made, _ := p.make(m, now)
		if made != nil && p.kind.refusal(made.to, nil) == nil && p.kind.refusal(made.to, p.base) == nil {
			taken, now = append(taken, m), made.to
		}
	}
	return taken, left, now
}

// within reports whether a path begins with another one.
func within(path, start []any) bool {
	return len(path) >= len(start) && slices.Equal(path[:len(start)], start)
}

// namespaceQuiet is the quiet time after the deletion of a namespace. Kubernetes waits five seconds before
// it deletes what is in the namespace.
const namespaceQuiet = 6 * time.Second

// namespaceDeleted makes a scenario in which the namespace is deleted with the resource in it. First, the
// resource alone is deleted, for comparison.
func (p *plot) namespaceDeleted() {
	b := p.inOtherNamespace()
	if b == nil || p.kind.refusal(b.object, nil) != nil {
		return
	}
	create := func(step string) Step {
		return Step{Name: step, Apply: []Manifest{{Object: runtime.DeepCopyJSON(b.object)}}}
	}
	p.add("namespace", "Created and deleted; created again, and the namespace deleted with the resource in it.",
		create("create"), Step{Name: "delete", Delete: &Delete{ObjectRef: refOf(b.object)}}, create("create-again"),
		Step{Name: "delete-namespace", Quiet: Duration(namespaceQuiet), Delete: &Delete{ObjectRef: ObjectRef{APIVersion: "v1", Kind: "Namespace", Name: otherNamespace}, Keep: true}})
	s := p.scenarios[len(p.scenarios)-1]
	s.Given = append(s.Given, b.given...)
}

// withOtherName returns a copy of the sample with another name. Other texts that contain the name of the
// sample change with it, except references to given objects: the name of a bucket must differ as well.
func (p *plot) withOtherName() *sibling {
	was := p.ref.Name
	is := was + "-b"
	word := regexp.MustCompile(`\b` + regexp.QuoteMeta(was) + `\b`)
	given := map[string]bool{}
	for _, m := range p.given {
		given[refOf(m.Object).Name] = true
	}
	copied := mapStrings(runtime.DeepCopyJSON(p.base), func(text string) string {
		if given[text] {
			return text
		}
		return word.ReplaceAllString(text, is)
	}).(map[string]any)
	p.rebuild(copied, p.ref.Namespace, is)
	copied["apiVersion"], copied["kind"] = p.base["apiVersion"], p.base["kind"]
	return &sibling{object: copied}
}

// otherNamespace is the namespace of the second resource.
const otherNamespace = "koboshi-other"

// inOtherNamespace returns a copy of the sample in another namespace, with copies of the given objects
// that are in the namespace of the sample. It returns nil if the kind has no namespaces.
func (p *plot) inOtherNamespace() *sibling {
	if !p.kind.namespaced {
		return nil
	}
	from := inDefault(p.ref.Namespace)
	move := func(object map[string]any) map[string]any {
		moved := runtime.DeepCopyJSON(object)
		for part := range moved {
			if part != "metadata" && part != "apiVersion" && part != "kind" {
				moved[part] = inNamespace(part, moved[part], from)
			}
		}
		p.rebuild(moved, otherNamespace, refOf(object).Name)
		return moved
	}
	b := &sibling{object: move(p.base), given: []Manifest{{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": otherNamespace}}}}}
	for _, m := range p.given {
		if inDefault(refOf(m.Object).Namespace) == from && p.hasNamespace(m.Object) {
			b.given = append(b.given, Manifest{Object: move(m.Object)})
		}
	}
	return b
}

// inNamespace replaces the namespace of the sample in fields that hold a namespace.
func inNamespace(field string, value any, from string) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = inNamespace(key, v[key], from)
		}
	case []any:
		for i := range v {
			v[i] = inNamespace(field, v[i], from)
		}
	case string:
		if v == from && strings.HasSuffix(strings.ToLower(field), "namespace") {
			return otherNamespace
		}
	}
	return value
}

// rebuild gives a copy of an object a name and a namespace. A kind without namespaces keeps none.
func (p *plot) rebuild(object map[string]any, namespace, name string) {
	u := unstructured.Unstructured{Object: object}
	u.SetName(name)
	u.SetNamespace(namespace)
}

// rootKinds lists built-in kinds without namespaces that may be among samples.
var rootKinds = []string{
	"Namespace", "Node", "PersistentVolume", "StorageClass.storage.k8s.io", "ClusterRole.rbac.authorization.k8s.io",
	"ClusterRoleBinding.rbac.authorization.k8s.io", "PriorityClass.scheduling.k8s.io", "IngressClass.networking.k8s.io",
	"RuntimeClass.node.k8s.io", "CustomResourceDefinition.apiextensions.k8s.io",
}

// hasNamespace reports whether an object has a namespace, as far as its kind is known.
func (p *plot) hasNamespace(object map[string]any) bool {
	kind := groupKind(object)
	for _, crd := range p.crds {
		if crd.Spec.Names.Kind+"."+crd.Spec.Group == kind {
			return crd.Spec.Scope == apiextensionsv1.NamespaceScoped
		}
	}
	return !slices.Contains(rootKinds, kind)
}
