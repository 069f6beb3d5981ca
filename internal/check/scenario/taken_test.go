package scenario

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheNameOfAChildIsTakenBeforeTheResourceIsCreated(t *testing.T) {
	t.Parallel()
	object := func(name string) Manifest {
		return Manifest{Object: map[string]any{"apiVersion": "sea.example.com/v1", "kind": "Boat", "metadata": map[string]any{"name": name}}}
	}
	pair := &Scenario{
		APIVersion: APIVersion, Kind: Kind, Name: "ellen-two-names",
		Description: "Boat ellen, from boat.yaml. Two resources in one namespace: created, and each of them deleted while the other exists.",
		Given:       []Manifest{{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "key"}}}},
		Steps: []Step{
			{Name: "second-alone", Apply: []Manifest{object("ellen-b")}}, {Name: "second-gone", Delete: &Delete{ObjectRef: refOf(object("ellen-b").Object)}},
			{Name: "first-alone", Apply: []Manifest{object("ellen")}}, {Name: "both", Apply: []Manifest{object("ellen-b")}, Spares: []string{"first-alone"}},
			{Name: "without-second", Delete: &Delete{ObjectRef: refOf(object("ellen-b").Object)}}, {Name: "both-again", Apply: []Manifest{object("ellen-b")}},
			{Name: "without-first", Delete: &Delete{ObjectRef: refOf(object("ellen").Object)}, Spares: []string{"second-alone"}},
		},
	}
	for kind := range TakenKinds {
		s := Taken(pair, kind+" default/ellen-map")
		if err := s.Validate(); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		var names []string
		for _, step := range s.Steps {
			names = append(names, step.Name)
			if step.Spares != nil {
				t.Errorf("step %s refers to a step that is gone", step.Name)
			}
		}
		if diff := cmp.Diff([]string{"create", "other", "delete-other", "delete"}, names); diff != "" {
			t.Errorf("%s: the steps, -want +got:\n%s", kind, diff)
		}
		if ref := refOf(s.Given[1].Object); len(s.Given) != 2 || ref.Kind != kind || ref.Name != "ellen-map" || ref.Namespace != "default" {
			t.Errorf("%s: given are %+v", kind, s.Given)
		}
		if s.Name != "ellen-taken-name-"+strings.ToLower(kind)+"-ellen-map" || !strings.HasSuffix(s.Description, "has the name of a child.") {
			t.Errorf("%s: the scenario is %s: %s", kind, s.Name, s.Description)
		}
	}
	if len(pair.Given) != 1 || pair.Steps[3].Spares == nil {
		t.Error("the pair itself has changed")
	}
	for child, of := range map[string]*Scenario{"Secret default/key": pair, "ConfigMap ellen": pair, "ConfigMap default/ellen": {Name: "ellen-direct"}} {
		if Taken(of, child) != nil {
			t.Errorf("%s of %s has a scenario", child, of.Name)
		}
	}
}
