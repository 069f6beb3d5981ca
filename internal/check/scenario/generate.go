package scenario

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Sample is a file of example objects.
type Sample struct {
	File    string
	Objects []unstructured.Unstructured
}

// GenerateOptions limits what Generate produces. Zero values stand for the defaults.
type GenerateOptions struct {
	// Primary lists the kinds for which scenarios are made, as "Kind.group"; empty means
	// the kinds of all CRDs.
	Primary []string
	// Seed determines the order in which fields are changed.
	Seed uint64
	// MostFields is the maximum number of fields that one scenario changes; 0 means 8.
	MostFields int
	// MostChanges is the maximum number of changes for one kind; 0 means 96. A note reports
	// how many changes were left out.
	MostChanges int
	// MostBack is the maximum number of fields that are changed and changed back; 0 means
	// 3.
	MostBack int
}

func (o GenerateOptions) defaulted() GenerateOptions {
	for _, option := range []struct {
		value *int
		zero  int
	}{{&o.MostFields, 8}, {&o.MostChanges, 96}, {&o.MostBack, 3}} {
		if *option.value <= 0 {
			*option.value = option.zero
		}
	}
	return o
}

// generator holds the state of Generate.
type generator struct {
	options GenerateOptions
	crds    []*apiextensionsv1.CustomResourceDefinition
	kinds   map[schema.GroupVersionKind]*customKind
	library library
	// thorough also tries values at the edges: empty, zero, and the bounds of the schema.
	thorough bool

	scenarios []*Scenario
	notes     []string
	names     map[string]bool // names of scenarios
	tried     map[string]bool // moves that were already made, each with its kind
	counts    map[string]int  // number of moves made, by kind
}

// Generate makes these scenarios for each sample of a kind that is reconciled:
//
//	NAME-life    created, deleted
//	NAME-change  created, then one field changed after another; several scenarios if needed
//	NAME-back    created, fields changed and changed back
//	NAME-scale   created, scaled up, down and back
//	NAME-again   created, deleted, created again, deleted
//	NAME-down    changed and deleted while the controller is down
//
// The returned scenarios alternate between the samples. The API server's own code checks
// all values against the schema, but a webhook may still refuse some. The notes explain
// which scenarios and changes could not be made. Equal arguments give equal results.
func Generate(samples []Sample, crds []*apiextensionsv1.CustomResourceDefinition, o GenerateOptions) ([]*Scenario, []string, error) {
	g := newGenerator(samples, crds, o)
	g.noteUnknownKinds()
	sampledKinds := map[string]bool{}
	var groups [][]*Scenario
	for _, s := range g.library {
		if s.primary {
			sampledKinds[s.kind()] = true
			before := len(g.scenarios)
			if err := g.object(s); err != nil {
				return nil, g.notes, fmt.Errorf("%s: %s: %w", s.file, refOf(s.object.Object), err)
			}
			groups = append(groups, g.scenarios[before:])
		}
	}
	var without []string
	for _, crd := range crds {
		if kind := crd.Spec.Names.Kind + "." + crd.Spec.Group; g.wanted(kind) && !sampledKinds[kind] {
			without = append(without, kind)
		}
	}
	if len(without) > 0 {
		g.note("%s: no scenario was generated, because there is no sample; write a sample or a scenario", strings.Join(without, ", "))
	}
	return ByTurns(groups), g.notes, nil
}

func newGenerator(samples []Sample, crds []*apiextensionsv1.CustomResourceDefinition, o GenerateOptions) *generator {
	g := &generator{
		options: o.defaulted(), crds: crds,
		kinds: map[schema.GroupVersionKind]*customKind{}, names: map[string]bool{}, tried: map[string]bool{}, counts: map[string]int{},
	}
	g.read(samples)
	return g
}

// FilesOf returns the file of the sample from which each scenario was generated, by the name of the
// scenario. A scenario creates the object of its sample first, with the same kind and name.
func FilesOf(samples []Sample, scenarios []*Scenario) map[string]string {
	files := map[string]string{}
	for _, s := range scenarios {
		created := firstApplied(s)
		for _, sample := range samples {
			if slices.ContainsFunc(sample.Objects, func(o unstructured.Unstructured) bool {
				return o.GroupVersionKind() == created.GroupVersionKind() && o.GetName() == created.GetName()
			}) {
				files[s.Name] = sample.File
				break
			}
		}
	}
	return files
}

// firstApplied returns the first object that a scenario applies.
func firstApplied(s *Scenario) (first unstructured.Unstructured) {
	for _, step := range s.Steps {
		for _, m := range step.Apply {
			return unstructured.Unstructured{Object: m.Object}
		}
	}
	return first
}

// noteUnknownKinds adds a note about the kinds of samples that no CRD defines, if no sample has a
// kind that is reconciled. If a sample has such a kind, the samples without a CRD are only objects
// to which the samples refer.
func (g *generator) noteUnknownKinds() {
	var unknown []string
	for _, s := range g.library {
		if s.primary {
			return
		}
		if kind := s.kind(); !g.defined(kind) && !slices.Contains(unknown, kind) {
			unknown = append(unknown, kind)
		}
	}
	if len(unknown) > 0 {
		g.note("there is no CRD for %s (name CRDs with --crds; for built-in kinds, write a scenario)", strings.Join(unknown, ", "))
	}
}

// ByTurns takes the first element of each group, then the second of each, and so on, so
// that something of each group is tried even if time is short.
func ByTurns[T any](groups [][]T) (all []T) {
	for i := 0; ; i++ {
		before := len(all)
		for _, group := range groups {
			if i < len(group) {
				all = append(all, group[i])
			}
		}
		if len(all) == before {
			return all
		}
	}
}

func (g *generator) note(format string, args ...any) {
	g.notes = append(g.notes, fmt.Sprintf(format, args...))
}

func (g *generator) wanted(kind string) bool {
	return len(g.options.Primary) == 0 || slices.Contains(g.options.Primary, kind)
}

func (g *generator) primary(object map[string]any) bool {
	kind := groupKind(object)
	return g.wanted(kind) && g.defined(kind)
}

// defined reports whether there is a CRD for the kind.
func (g *generator) defined(kind string) bool {
	return slices.ContainsFunc(g.crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
		return crd.Spec.Names.Kind+"."+crd.Spec.Group == kind
	})
}

func (g *generator) kind(object unstructured.Unstructured) (*customKind, error) {
	gvk := object.GroupVersionKind()
	if k, known := g.kinds[gvk]; known {
		return k, nil
	}
	for _, crd := range g.crds {
		if crd.Spec.Group == gvk.Group && crd.Spec.Names.Kind == gvk.Kind {
			k, err := newCustomKind(crd, gvk.Version)
			g.kinds[gvk] = k
			return k, err
		}
	}
	return nil, fmt.Errorf("there is no CRD for %s", gvk.GroupKind())
}

// object makes the scenarios of one sample.
func (g *generator) object(s *sampled) error {
	p, err := g.plot(s)
	if err != nil {
		return err
	}
	p.add("life", "Created and deleted.", p.create("create"), p.delete("delete"))
	p.again()
	if err := p.kind.refusal(p.base, nil); err != nil {
		g.note("%s: %s: no scenario changes its fields, because the sample does not match the schema; correct the sample, or name other samples with --samples: %v", s.file, p.ref, err)
		return nil
	}
	p.changes()
	p.back()
	p.scale()
	p.down()
	return nil
}

func (g *generator) plot(s *sampled) (*plot, error) {
	k, err := g.kind(s.object)
	if err != nil {
		return nil, err
	}
	p := &plot{
		generator: g, sample: s, kind: k, ref: refOf(s.object.Object), base: k.withoutNulls(s.object.Object),
		given: g.library.given(s), title: g.title(s), random: g.random(s),
	}
	p.twins, p.renamed = g.library.twins(s)
	return p, nil
}

// random returns a source of random numbers that depends only on the seed and the object,
// so that an additional sample does not change the scenarios of other samples.
func (g *generator) random(s *sampled) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprintln(hash, s.kind(), s.object.GetAPIVersion(), s.object.GetNamespace(), s.object.GetName())
	return rand.New(rand.NewPCG(g.options.Seed, hash.Sum64()))
}

// title returns the prefix of the names of the scenarios of a sample. If the prefix is
// already used, title adds the kind or the version.
func (g *generator) title(s *sampled) string {
	const most = 40
	gvk := s.object.GroupVersionKind()
	name := label(s.object.GetName())
	kind, version := name+"-"+label(gvk.Kind), name+"-"+label(gvk.Version)
	for _, other := range g.library {
		if other != s && sameObject(other, s) {
			kind, version = version, kind
			break
		}
	}
	for _, candidate := range []string{name, kind, version} {
		candidate = strings.Trim(candidate[:min(len(candidate), most)], "-")
		if !g.names[candidate+"-life"] {
			return candidate
		}
	}
	return strings.Trim(name[:min(len(name), most)], "-")
}

// label turns a name into a DNS label.
func label(name string) string {
	out := strings.Trim(notInTitle.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if out == "" {
		return "sample"
	}
	return out
}

// Without returns the scenario without the given step and without the steps that depend on
// it: steps whose sameAs or spares names it, and the step that undoes it. It returns nil if only
// deletions are left.
func (s *Scenario) Without(step string) *Scenario {
	dropped := map[string]bool{step: true}
	for _, st := range s.Steps {
		subject, isUndo := strings.CutPrefix(st.Name, undoPrefix)
		if dropped[st.SameAs] || isUndo && dropped[subject] || slices.ContainsFunc(st.Spares, func(spared string) bool { return dropped[spared] }) {
			dropped[st.Name] = true
		}
	}
	out, err := s.clone()
	if err != nil {
		return nil
	}
	out.Steps = slices.DeleteFunc(out.Steps, func(st Step) bool { return dropped[st.Name] })
	if !slices.ContainsFunc(out.Steps, func(st Step) bool { return st.Delete == nil && len(st.actions()) > 0 }) {
		return nil
	}
	return out
}

// undoPrefix is the prefix of the name of a step that undoes another one.
const undoPrefix = "undo-"

// Undoes reports whether a generated step undoes another one.
func (st *Step) Undoes() bool { return strings.HasPrefix(st.Name, undoPrefix) }
