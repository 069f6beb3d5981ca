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

// GenerateOptions bound what Generate makes. Zero values are the defaults.
type GenerateOptions struct {
	// Primary are the kinds that scenarios are made for, "Kind.group"; empty means
	// all of the definitions.
	Primary []string
	// Seed decides in which order fields are changed.
	Seed uint64
	// MostFields is how many fields one scenario changes; 0 means 8.
	MostFields int
	// MostChanges is how many changes are made of the objects of one kind; 0 means
	// 96. A note says how many were left out.
	MostChanges int
	// MostBack is how many fields are changed there and back; 0 means 3.
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

// generator makes scenarios.
type generator struct {
	options GenerateOptions
	crds    []*apiextensionsv1.CustomResourceDefinition
	kinds   map[schema.GroupVersionKind]*customKind
	library library

	scenarios []*Scenario
	notes     []string
	names     map[string]bool // of scenarios
	tried     map[string]bool // moves, by kind
	counts    map[string]int  // moves of each kind
}

// Generate makes scenarios for each sample of a kind that is reconciled:
//
//	NAME-life    created, deleted
//	NAME-change  created, one field changed after the other; as many as it takes
//	NAME-back    created, fields changed and changed back
//	NAME-scale   created, scaled up, down and back
//	NAME-again   created, deleted, created once more, deleted
//	NAME-down    changed and deleted while the controller is down
//
// They come by turns, one of each sample. All that the schema says of values is
// heeded, by the API server's own code; a webhook may still refuse some. The notes
// say what could not be made. The result depends on the arguments and on nothing else.
func Generate(samples []Sample, crds []*apiextensionsv1.CustomResourceDefinition, o GenerateOptions) ([]*Scenario, []string, error) {
	g := &generator{
		options: o.defaulted(), crds: crds,
		kinds: map[schema.GroupVersionKind]*customKind{}, names: map[string]bool{}, tried: map[string]bool{}, counts: map[string]int{},
	}
	for _, sample := range samples {
		for _, object := range sample.Objects {
			if object.GetName() == "" {
				g.note("%s: a %s without a name was left out", sample.File, object.GetKind())
				continue
			}
			copied := unstructured.Unstructured{Object: wholeNumbers(object.DeepCopy().Object).(map[string]any)}
			g.library = append(g.library, &sampled{file: sample.File, object: copied, primary: g.primary(object.Object)})
		}
	}
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
	for _, crd := range crds {
		if kind := crd.Spec.Names.Kind + "." + crd.Spec.Group; g.wanted(kind) && !sampledKinds[kind] {
			g.note("%s: there is no sample, so no scenario was made; write one, or a scenario", kind)
		}
	}
	return byTurns(groups), g.notes, nil
}

// byTurns takes the first of each sample, then the second of each: where time is
// short, each sample is tried.
func byTurns(groups [][]*Scenario) (all []*Scenario) {
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
	return g.wanted(kind) && slices.ContainsFunc(g.crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool {
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
	return nil, fmt.Errorf("there is no definition of %s", gvk.GroupKind())
}

// object makes the scenarios of one sample.
func (g *generator) object(s *sampled) error {
	k, err := g.kind(s.object)
	if err != nil {
		return err
	}
	p := &plot{
		generator: g, sample: s, kind: k, ref: refOf(s.object.Object), base: s.object.Object,
		given: g.library.given(s), title: g.title(s), random: g.random(s),
	}
	p.twins, p.renamed = g.library.twins(s)
	p.add("life", "Created and deleted.", p.create("create"), p.delete("delete"))
	p.again()
	if err := k.refusal(p.base, nil); err != nil {
		g.note("%s: %s: the schema refuses the sample, so its fields were not changed: %v", s.file, p.ref, err)
		return nil
	}
	p.changes()
	p.back()
	p.scale()
	p.down()
	return nil
}

// random depends on the seed and the object, so that one sample more does not
// change the scenarios of the others.
func (g *generator) random(s *sampled) *rand.Rand {
	hash := fnv.New64a()
	fmt.Fprintln(hash, s.kind(), s.object.GetAPIVersion(), s.object.GetNamespace(), s.object.GetName())
	return rand.New(rand.NewPCG(g.options.Seed, hash.Sum64()))
}

// title is how the scenarios of a sample begin. Where two samples would have the
// same, the later one says its kind, and its version if that is not enough.
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

// label makes a DNS label of a name.
func label(name string) string {
	out := strings.Trim(notInTitle.ReplaceAllString(strings.ToLower(name), "-"), "-")
	if out == "" {
		return "sample"
	}
	return out
}

// Without is the scenario without a step that the server refuses, and without
// those that make no sense then: steps that have to lead to the same as that one,
// and undo-X if it was change-X or another step that X goes back on. It is nil if
// nothing is left that does more than delete.
func (s *Scenario) Without(step string) *Scenario {
	dropped := map[string]bool{step: true}
	for _, st := range s.Steps {
		subject, isUndo := strings.CutPrefix(st.Name, undoPrefix)
		if dropped[st.SameAs] || isUndo && dropped[subject] {
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

// undoPrefix begins the name of a step that takes another one back.
const undoPrefix = "undo-"
