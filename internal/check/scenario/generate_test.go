package scenario

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic/fake"
)

const operators = "../../../operators"

// readSamples reads the samples of an operator in this repository.
func readSamples(t *testing.T, operator string) []Sample {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(operators, operator, "config/samples/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples of %s: %v", operator, err)
	}
	var all []Sample
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		objects, err := Manifest{File: file}.objects()
		if err != nil {
			t.Fatal(err)
		}
		sample := Sample{File: filepath.Base(file)}
		for _, o := range objects {
			sample.Objects = append(sample.Objects, unstructured.Unstructured{Object: o})
		}
		all = append(all, sample)
	}
	return all
}

func readCRDs(t *testing.T, files ...string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		decoder := utilyaml.NewYAMLOrJSONDecoder(f, 4096)
		for {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := decoder.Decode(crd); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if crd.Name != "" {
				all = append(all, crd)
			}
		}
	}
	return all
}

func operatorCRDs(t *testing.T, operator string) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(operators, operator, "config/crd/bases/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions of %s: %v", operator, err)
	}
	return readCRDs(t, files...)
}

var generatedOnce = map[string][]*Scenario{}

// scenariosOf returns the scenarios for the samples of an operator. It makes them once for
// all tests.
func scenariosOf(t *testing.T, operator string) []*Scenario {
	t.Helper()
	if generatedOnce[operator] == nil {
		all, _, err := Generate(readSamples(t, operator), operatorCRDs(t, operator), GenerateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		generatedOnce[operator] = all
	}
	return generatedOnce[operator]
}

// widgets returns the scenarios for testdata/sample.yaml.
func widgets(t *testing.T, o GenerateOptions) ([]*Scenario, []string) {
	t.Helper()
	crds := readCRDs(t, "testdata/widgets.yaml")[:1]
	all, notes, err := Generate([]Sample{{File: "sample.yaml", Objects: objectsOf(t, "testdata/sample.yaml")}}, crds, o)
	if err != nil {
		t.Fatal(err)
	}
	return all, notes
}

func named(t *testing.T, all []*Scenario, name string) *Scenario {
	t.Helper()
	i := slices.IndexFunc(all, func(s *Scenario) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no scenario %s", name)
	}
	return all[i]
}

// outline returns a line for each step, with its name, its sameAs, and its patch or number
// of replicas.
func outline(s *Scenario) []string {
	var all []string
	for _, st := range s.Steps {
		line := st.Name
		if st.SameAs != "" {
			line += " =" + st.SameAs
		}
		if st.WhileDown {
			line += " down"
		}
		if st.Patch != nil {
			line += " " + string(st.Patch.Merge)
		}
		if st.Scale != nil {
			line += fmt.Sprintf(" %d", st.Scale.Replicas)
		}
		all = append(all, line)
	}
	return all
}

func TestEachSampleGetsItsStories(t *testing.T) {
	all, _ := widgets(t, GenerateOptions{})
	for name, want := range map[string][]string{
		"first-life":  {"create", "delete"},
		"first-again": {"create", "delete", "create-again =create", "delete-again =delete"},
		"first-scale": {"create", "up 3", "down 1", "home =create 2"},
	} {
		if diff := cmp.Diff(want, outline(named(t, all, name))); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	down := named(t, all, "first-down")
	name := down.Steps[3].Name
	if diff := cmp.Diff([]string{"create", "delete", "create-again", name, "undo-" + name + " =create-again",
		name + "-down =" + name + " down", "undo-" + name + "-down =create-again", "delete-down =delete down"}, withoutPatches(down)); diff != "" {
		t.Error(diff)
	}
	back := named(t, all, "first-back")
	for i := 1; i < len(back.Steps); i += 2 {
		if there, home := back.Steps[i], back.Steps[i+1]; home.Name != "undo-"+there.Name || home.SameAs != "create" {
			t.Errorf("%s is followed by %s, the same as %q", there.Name, home.Name, home.SameAs)
		}
	}
	if len(back.Steps) != 7 {
		t.Errorf("the scenario has %d steps, want 7", len(back.Steps))
	}
}

func withoutPatches(s *Scenario) []string {
	all := outline(s)
	for i := range all {
		all[i], _, _ = strings.Cut(all[i], " {")
	}
	return all
}

// changesOf returns all patches in the scenarios that change fields, keyed by step.
func changesOf(all []*Scenario) map[string]string {
	changes := map[string]string{}
	for _, s := range all {
		if strings.Contains(s.Name, "-change") {
			for _, st := range s.Steps[1:] {
				changes[st.Name] = string(st.Patch.Merge)
			}
		}
	}
	return changes
}

func TestEveryFieldOfTheSchemaIsChangedToWhatItAllows(t *testing.T) {
	all, _ := widgets(t, GenerateOptions{})
	got := changesOf(all)
	for step, want := range map[string]string{
		"change-size":           `{"spec":{"size":"large"}}`,
		"change-replicas":       `{"spec":{"replicas":3}}`,
		"change-code":           `{"spec":{"code":"ABC-02"}}`,
		"change-secretRef-name": `{"spec":{"secretRef":{"name":"paint-b"}}}`,
		"change-labels-a":       `{"spec":{"labels":{"a":"2"}}}`,
		"append-order":          `{"spec":{"order":["one","two","two-b"]}}`,
		"append-tags":           `{"spec":{"tags":["red","blue","blue-b"]}}`,
		"append-ports":          `{"spec":{"ports":[{"name":"web","port":80},{"name":"web-b","port":80}]}}`,
		"change-ports-port":     `{"spec":{"ports":[{"name":"web","port":81}]}}`,
		"add-step":              `{"spec":{"step":5}}`,
		"add-never":             `{"spec":{"never":"a"}}`,
		"add-loud":              `{"spec":{"loud":true}}`,
		"remove-labels":         `{"spec":{"labels":null}}`,
		"remove-secretRef":      `{"spec":{"secretRef":null}}`,
		"remove-replicas":       `{"spec":{"replicas":null}}`,
	} {
		if got[step] != want {
			t.Errorf("%s: got %s, want %s", step, got[step], want)
		}
	}
	for _, step := range []string{"add-to-labels", "shorten-labels", "reorder-order", "shorten-order", "shorten-tags", "add-probe-path", "add-probe-interval"} {
		if got[step] == "" {
			t.Errorf("there is no step %s", step)
		}
	}
	for _, step := range []string{"reorder-tags", "change-serial", "remove-size", "change-ports-name", "remove-ports-port"} {
		if got[step] != "" {
			t.Errorf("%s makes no sense: %s", step, got[step])
		}
	}
}

func TestWhatCannotBeChangedIsNoted(t *testing.T) {
	_, notes := widgets(t, GenerateOptions{})
	text := strings.Join(notes, "\n")
	for _, want := range []string{
		`left out change spec.serial: spec.serial: Invalid value: "4712": serial is immutable`,
		"spec.anything: not changed, because the schema allows any content",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no note says %q:\n%s", want, text)
		}
	}
}

func TestManyRefusedChangesAreNotedTogether(t *testing.T) {
	g := &generator{}
	p := &plot{generator: g, sample: &sampled{file: "a.yaml"}}
	p.refused = []string{"change spec.a: immutable", "change spec.b: immutable"}
	p.noteRefused()
	if len(g.notes) != 2 {
		t.Errorf("few refused changes: %q", g.notes)
	}
	g.notes, p.refused = nil, append(p.refused, "change spec.c: immutable")
	p.noteRefused()
	if len(g.notes) != 1 || !strings.Contains(g.notes[0], "left out 3 changes that the API server would refuse, such as change spec.a: immutable") {
		t.Errorf("many refused changes: %q", g.notes)
	}
}

func TestNoScenarioChangesMoreFieldsThanAllowed(t *testing.T) {
	all, notes := widgets(t, GenerateOptions{MostFields: 3, MostChanges: 7})
	changes := 0
	for _, s := range all {
		if strings.Contains(s.Name, "-change") {
			changes += len(s.Steps) - 1
			if len(s.Steps) > 4 {
				t.Errorf("%s has %d steps", s.Name, len(s.Steps))
			}
		}
	}
	if changes != 7 {
		t.Errorf("there are %d changes", changes)
	}
	if !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "because the maximum per kind is 7") }) {
		t.Errorf("no note reports that some changes were left out: %q", notes)
	}
}

func TestGeneratingIsDeterministicForASeed(t *testing.T) {
	first, notes := widgets(t, GenerateOptions{Seed: 3})
	second, again := widgets(t, GenerateOptions{Seed: 3})
	if diff := cmp.Diff([]any{first, notes}, []any{second, again}); diff != "" {
		t.Error(diff)
	}
	other, _ := widgets(t, GenerateOptions{Seed: 4})
	if cmp.Equal(outline(named(t, first, "first-change")), outline(named(t, other, "first-change"))) {
		t.Error("another seed makes no difference")
	}
	if len(changesOf(first)) != len(changesOf(other)) {
		t.Error("another seed changes other fields")
	}
}

func TestScenariosThatNoSeedChangesAreKnown(t *testing.T) {
	first, _ := widgets(t, GenerateOptions{Seed: 3})
	var kept, changed int
	for _, seed := range []uint64{4, 5, 6} {
		other, _ := widgets(t, GenerateOptions{Seed: seed})
		for _, s := range first {
			equal := cmp.Equal(s, named(t, other, s.Name))
			if !equal && !s.Seeded {
				t.Errorf("%s has other steps with seed %d", s.Name, seed)
			}
			if kept++; !equal {
				kept, changed = kept-1, changed+1
			}
		}
	}
	if kept == 0 || changed == 0 {
		t.Errorf("%d scenarios are the same with another seed, and %d differ", kept, changed)
	}
	copied, err := first[0].clone()
	if err != nil {
		t.Fatal(err)
	}
	if first[0].Seeded = true; copied.Seeded {
		t.Errorf("%s depends on the seed", first[0].Name)
	}
	if copied, err = first[0].clone(); err != nil || !copied.Seeded {
		t.Errorf("a copy forgets that it depends on the seed, %v", err)
	}
}

func TestASampleDoesNotChangeTheScenariosOfOthers(t *testing.T) {
	alone, _ := widgets(t, GenerateOptions{})
	sample := Sample{File: "sample.yaml", Objects: objectsOf(t, "testdata/sample.yaml")}
	second := *sample.Objects[1].DeepCopy()
	second.SetName("second")
	both, _, err := Generate([]Sample{sample, {File: "second.yaml", Objects: []unstructured.Unstructured{second}}},
		readCRDs(t, "testdata/widgets.yaml")[:1], GenerateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var ofFirst []*Scenario
	for i, s := range both {
		first := slices.ContainsFunc(alone, func(a *Scenario) bool { return a.Name == s.Name })
		if first {
			ofFirst = append(ofFirst, s)
		}
		if i < 8 && first != (i%2 == 0) {
			t.Errorf("%s is number %d, where a scenario of the other sample belongs", s.Name, i)
		}
	}
	if diff := cmp.Diff(alone, ofFirst); diff != "" {
		t.Error(diff)
	}
}

func givenOf(s *Scenario) []string {
	var all []string
	for _, m := range s.Given {
		all = append(all, refOf(m.Object).String())
	}
	return all
}

func TestWhatASampleNeedsIsGiven(t *testing.T) {
	all := slices.Concat(scenariosOf(t, "storagebucket"), scenariosOf(t, "markdownview"))
	const secret, store = "Secret minio-credentials", "ObjectStore.storage.koboshi.dev minio"
	for name, want := range map[string][]string{
		"minio-life":           {secret},
		"films-life":           {secret, store},
		"photos-life":          {secret, store},
		"photos-v1alpha1-life": {"Secret photos-credentials"},
		"operations-life":      {"ConfigMap runbooks"},
		"handbook-life":        nil,
	} {
		if diff := cmp.Diff(want, givenOf(named(t, all, name))); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestTheNamespaceOfASampleIsGiven(t *testing.T) {
	sample := Sample{File: "sample.yaml", Objects: objectsOf(t, "testdata/sample.yaml")}
	for i := range sample.Objects {
		sample.Objects[i].SetNamespace("shop")
	}
	all, _, err := Generate([]Sample{sample}, readCRDs(t, "testdata/widgets.yaml")[:1], GenerateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Namespace shop", "Secret shop/paint"}, givenOf(all[0])); diff != "" {
		t.Error(diff)
	}
}

func TestANamespaceBesideASampleIsGiven(t *testing.T) {
	registry := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "registry"}}}
	sample := Sample{File: "sample.yaml", Objects: append(objectsOf(t, "testdata/sample.yaml"), registry)}
	all, _, err := Generate([]Sample{sample}, readCRDs(t, "testdata/widgets.yaml")[:1], GenerateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := givenOf(all[0]); !slices.Contains(got, "Namespace registry") {
		t.Errorf("the given objects are %q", got)
	}
}

func TestOnlyPrimaryKindsGetScenarios(t *testing.T) {
	all, _, err := Generate(readSamples(t, "storagebucket"), operatorCRDs(t, "storagebucket"), GenerateOptions{Primary: []string{"ObjectStore.storage.koboshi.dev"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if !strings.HasPrefix(s.Name, "minio-") {
			t.Errorf("there is an unexpected scenario %s", s.Name)
		}
	}
	_, notes, err := Generate(nil, operatorCRDs(t, "storagebucket"), GenerateOptions{})
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "ObjectStore.storage.koboshi.dev, StorageBucket.storage.koboshi.dev: no scenario was generated") {
		t.Errorf("without samples: %q, %v", notes, err)
	}
}

// Each generated scenario must be valid, and each of its patches must lead to an object
// that fits the schema.
func TestGeneratedScenariosAreValid(t *testing.T) {
	for _, operator := range []string{"storagebucket", "markdownview"} {
		g := &generator{crds: operatorCRDs(t, operator), kinds: map[schema.GroupVersionKind]*customKind{}}
		for _, s := range scenariosOf(t, operator) {
			if err := s.Validate(); err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
			replay(t, s, g)
		}
	}
}

func replay(t *testing.T, s *Scenario, g *generator) {
	t.Helper()
	var now map[string]any
	for _, st := range s.Steps {
		before := now
		switch {
		case st.Apply != nil:
			now = st.Apply[0].Object
		case st.Delete != nil:
			now = nil
			continue
		case st.Patch != nil:
			now = merged(t, now, st.Patch.Merge)
		default:
			continue
		}
		k, err := g.kind(unstructured.Unstructured{Object: now})
		if err != nil {
			t.Fatal(err)
		}
		if err := k.refusal(now, before); err != nil {
			t.Errorf("%s: %s: %v", s.Name, st.Name, err)
		}
	}
}

// merged applies the patch with a library other than the one that created the patch.
func merged(t *testing.T, object map[string]any, patch []byte) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{Object: object}
	gvr, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	client := fake.NewSimpleDynamicClient(runtime.NewScheme(), u.DeepCopy()).Resource(gvr).Namespace(u.GetNamespace())
	out, err := client.Patch(t.Context(), u.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out.Object
}

func TestWithoutTakesAlongWhatMakesNoSenseAlone(t *testing.T) {
	all, _ := widgets(t, GenerateOptions{})
	down := named(t, all, "first-down")
	before := mustJSON(down)
	if diff := cmp.Diff([]string{"create", "delete", "create-again", "delete-down =delete down"}, outline(down.Without(down.Steps[3].Name))); diff != "" {
		t.Error(diff)
	}
	if string(mustJSON(down)) != string(before) {
		t.Error("Without changed the scenario itself")
	}
	change := named(t, all, "first-change")
	if got := len(change.Without(change.Steps[2].Name).Steps); got != len(change.Steps)-1 {
		t.Errorf("after removing one of %d steps, %d are left", len(change.Steps), got)
	}
	if got := named(t, all, "first-life").Without("create"); got != nil {
		t.Errorf("without the step create, %v is left", outline(got))
	}
	if err := down.Without("delete").Validate(); err != nil {
		t.Error(err)
	}
}

func TestTextThatFitsAPatternIsFound(t *testing.T) {
	for _, pattern := range []string{
		`^[A-Z]{3}-[0-9]{2}$`, `^(red|green)$`, `^#[0-9a-f]{6}$`, `^arn:aws:[a-z]+::\d{12}:role/.+$`, `^v\d+(\.\d+)*$`, `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`,
	} {
		if text, ok := matching(pattern); !ok {
			t.Errorf("%s: %q", pattern, text)
		}
	}
	for _, pattern := range []string{`(`, `^a\bb$`, `^$`} {
		if text, ok := matching(pattern); ok {
			t.Errorf("%s: %q", pattern, text)
		}
	}
}

func TestASampleThatTheSchemaRefusesIsNotChanged(t *testing.T) {
	objects := objectsOf(t, "testdata/sample.yaml")
	objects[1].Object["spec"].(map[string]any)["size"] = "huge"
	all, notes, err := Generate([]Sample{{File: "sample.yaml", Objects: objects}}, readCRDs(t, "testdata/widgets.yaml")[:1], GenerateOptions{})
	if err != nil || len(all) != 2 || len(notes) != 1 || !strings.Contains(notes[0], "the sample does not match the schema") {
		t.Errorf("got %d scenarios, %q, %v", len(all), notes, err)
	}
}

func TestKindsWithoutASampleAreInOneNote(t *testing.T) {
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, kind := range []string{"Oar", "Sail"} {
		crds = append(crds, &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "sea.example.com", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind},
		}})
	}
	_, notes, err := Generate(nil, crds, GenerateOptions{})
	if err != nil || len(notes) != 1 || !strings.HasPrefix(notes[0], "Oar.sea.example.com, Sail.sea.example.com: no scenario was generated") {
		t.Errorf("%v: %q", err, notes)
	}
}
