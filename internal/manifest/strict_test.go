package manifest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// markerProblems returns the problems of one package of markers.txtar.
func markerProblems(t *testing.T, name string) (problems []string) {
	t.Helper()
	dir := extract(t, archive(t, "markers.txtar"))
	result, err := Generate(t.Context(), Options{Dir: dir, Args: []string{"rbac:roleName=a", "output:none", "paths=./" + name}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range result.Problems {
		problems = append(problems, strings.TrimPrefix(p.String(), name+"/types.go:"))
	}
	return problems
}

func TestWrongMarkersAreReportedWithWhatWasProbablyMeant(t *testing.T) {
	t.Parallel()
	const (
		aboveAField = "; put it directly above a field"
		aboveAType  = "; put it directly above a type"
		either      = "because it describes a type or a field; put it directly above a type or a field"
		outside     = "outside of declarations and their comments, with an empty line after it"
		thePackage  = "because it describes the package; put it " + outside
	)
	for name, want := range map[string][]string{
		"misspelled": {
			"4:2: unknown marker +kubebuilder:validation:Minimun; did you mean +kubebuilder:validation:Minimum?",
			"6:2: unknown marker +kubebuilder:validation:minimum; did you mean +kubebuilder:validation:Minimum?",
			"8:2: unknown marker +optinal; did you mean +optional?",
			"10:2: unknown marker +k8s:optionl; did you mean +k8s:optional?",
			"12:2: unknown marker +listtype; did you mean +listType?",
			"13:2: unknown marker +listMapKeys; did you mean +listMapKey?",
			"15:2: unknown marker +Kubebuilder:validation:Optional; did you mean +kubebuilder:validation:Optional?",
			"17:2: unknown marker +kubebuilder:MaxLength; did you mean +kubebuilder:validation:MaxLength?",
			"19:2: unknown marker +kubebuilder:validation:Message; see https://book.kubebuilder.io/reference/markers for the list",
			"21:2: marker +kubebuilder:validation:Optional is followed by text, and is therefore ignored; move the text to a line of its own",
			"25:1: unknown marker +kubebuilder:printcolum:name; did you mean +kubebuilder:printcolumn:name?",
			"26:1: unknown marker +kubebuilder:subresource:state; did you mean +kubebuilder:subresource:status?",
			"29:1: unknown marker +kubebuilder:rbca:groups; did you mean +kubebuilder:rbac:groups?",
		},
		"arguments": {
			`4:2: marker +kubebuilder:validation:Minimum: invalid minimum value: strconv.ParseFloat: parsing "one": invalid syntax`,
			`6:2: marker +kubebuilder:validation:MinLength: expected integer, got "a"`,
			`8:2: marker +kubebuilder:validation:UniqueItems: expected true or false, got "maybe"`,
			`10:2: marker +optional: extra arguments provided: "true"`,
			"14:1: marker +kubebuilder:resource has no argument scop; did you mean scope?",
			"15:1: marker +kubebuilder:resource has no argument shortname; did you mean shortName?",
			`16:1: marker +kubebuilder:printcolumn: missing argument "JSONPath"`,
			"19:1: marker +kubebuilder:rbac has no argument resource; did you mean resources?",
			`20:1: marker +kubebuilder:webhook: expected true or false, got "perhaps"`,
		},
		"misplaced": {
			"4:1: marker +kubebuilder:validation:Required has no effect on a type, because it describes a field or the package; put it directly above a field, or " + outside,
			"5:1: marker +optional has no effect on a type, because it describes a field" + aboveAField,
			"6:1: marker +nullable has no effect on a type, because it describes a field" + aboveAField,
			"8:2: marker +kubebuilder:resource has no effect on a field, because it describes a type" + aboveAType,
			"10:2: marker +kubebuilder:rbac has no effect on a field, " + thePackage,
			"12:2: marker +kubebuilder:validation:ExactlyOneOf has no effect on a field, because it describes a type" + aboveAType,
			"17:1: marker +kubebuilder:rbac has no effect here, " + thePackage,
			"19:2: marker +kubebuilder:rbac has no effect here, " + thePackage,
			"20:2: marker +kubebuilder:validation:Minimum has no effect here, " + either,
			"25:1: marker +kubebuilder:object:generate has no effect here, because it describes a type or the package; put it directly above a type, or " + outside,
			"29:1: marker +kubebuilder:validation:Enum has no effect here, " + either,
		},
		"fine":      nil,
		"generated": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(want, markerProblems(t, name)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheShapesHaveOnlyTheWrongMarkersThatAreMeantToBeWrong(t *testing.T) {
	t.Parallel()
	dir := extract(t, archive(t, "shapes.txtar"))
	useModules(t, dir, "example.com/shapes")
	result, err := Generate(t.Context(), Options{Dir: dir, Args: []string{"rbac:roleName=a", "output:none", "paths=./..."}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range result.Problems {
		got = append(got, p.File+" "+p.Marker)
	}
	want := []string{
		"api/union/v1alpha1/types.go +kubebuilder:validation:ExactlyOneOf",
		"api/versions/v1/types.go +kubebuilder:conversion:hub",
		"controllers/first/controller.go +kubebuilder:rbac",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheCommentsAreAsBeforeAfterTheMarkersWereChecked(t *testing.T) {
	t.Parallel()
	dir := project(t, small)
	generated(t, Options{Dir: dir})
	if data, err := os.ReadFile(filepath.Join(dir, smallRole)); err != nil || !strings.Contains(string(data), "deployments") {
		t.Errorf("%v:\n%s", err, data)
	}
}
