package scaffold

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fleet returns a project with a kind that is edited in many places.
func fleet(t *testing.T) project {
	p := newProject(t)
	p.api("sea", "v1", "Ship")
	p.api("sea", "v1beta1", "Ship")
	p.api("sea", "v1", "ShipYard")
	p.webhook(WebhookOptions{Kind: ship, Defaulting: true, Validation: true, Conversion: true, Spokes: []string{"v1beta1"}})
	p.edit("api/v1/ship_types.go", "\tText string", "\t// shipCount counts the crew of the Ship.\n\tShipCount int32 `json:\"shipCount,omitempty\"`\n\n\tText string")
	p.edit("api/v1/ship_types.go", "func init() {", "// ShipPhase is a phase.\ntype ShipPhase string\n\nfunc init() {")
	p.edit("cmd/main.go", "Starting the manager", "Casting off")
	p.edit("internal/controller/ship_controller.go", "\treturn ctrl.Result{}, errors.Join(", "\t// The Ship sails.\n\treturn ctrl.Result{}, errors.Join(")
	p.edit("config/crd/kustomization.yaml", "resources:\n", "resources:\n- ship.yaml\n")
	if err := os.MkdirAll(filepath.Join(p.dir, "internal", "dock"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.write("internal/dock/dock.go", `package dock

import (
	seav1 "example.com/harbour/api/v1"
	"example.net/unknown"
)

// Ship holds a Ship, and ShipCount belongs to another package.
type Ship struct {
	seav1.Ship
	ShipCount int
}

func use(s Ship) (seav1.ShipPhase, string) {
	Shipped := seav1.ShipSpec{}
	unknown.Each(func(s *seav1.Ship) { _ = s })
	return seav1.ShipPhase(Shipped.Text), s.Ship.Name
}
`)
	return p
}

func (p project) rename(from, to string) {
	p.Helper()
	p.run(Rename(RenameOptions{Dir: p.dir, Group: "sea", Kind: from, To: to}))
}

func TestRenamingAKindAndBackRestoresEveryByte(t *testing.T) {
	p := fleet(t)
	before := p.files()
	p.rename("Ship", "Boat")
	if maps.Equal(before, p.files()) {
		t.Error("nothing was renamed")
	}
	p.rename("Boat", "Ship")
	p.same(before)
}

func TestARenamedKindIsWhatCreateWouldHaveMade(t *testing.T) {
	for _, shape := range Shapes {
		t.Run(shape, func(t *testing.T) {
			create := func(kind string) project {
				p := newProject(t)
				k := Kind{Group: "sea", Version: "v1", Kind: kind}
				p.run(CreateAPI(APIOptions{Dir: p.dir, Kind: k, Resource: true, Controller: true, Shape: shape}))
				p.api("sea", "v1", "ShipYard")
				if shape != ShapeClientGo { // which has no webhooks
					p.webhook(WebhookOptions{Kind: k, Defaulting: true, Validation: true})
				}
				return p
			}
			p := create("Ship")
			p.rename("Ship", "Category")
			want, got := create("Category").files(), p.files()
			for _, files := range []map[string]string{want, got} {
				maps.DeleteFunc(files, func(name, _ string) bool { return generated(name) })
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRenamingRenamesDeclarationsWithEverythingThatRefersToThem(t *testing.T) {
	p := fleet(t)
	p.rename("Ship", "Boat")
	files := p.files()
	for name, texts := range map[string][]string{
		"api/v1/boat_types.go":                   {"type BoatPhase string", "ShipCount int32 `json:\"shipCount,omitempty\"`", "&BoatList{}", "// shipCount counts the crew of the Boat."},
		"api/v1/shipyard_types.go":               {"type ShipYardSpec struct"},
		"internal/controller/boat_controller.go": {"// The Boat sails.", "type BoatReconciler struct", `"boat-"+obj.Name`},
		"internal/dock/dock.go":                  {"type Ship struct {\n\tseav1.Boat\n\tShipCount int", "(seav1.BoatPhase, string)", "seav1.BoatSpec{}", "s.Boat.Name", "func(s *seav1.Boat)"},
		"cmd/main.go":                            {"controller.BoatReconciler{", "SetupBoatWebhookWithManager", "controller.ShipYardReconciler{", "Casting off", `"sea-boat"`},
		"config/crd/kustomization.yaml":          {"- ship.yaml", "sea.example.com_boats.yaml", "sea.example.com_shipyards.yaml"},
		"PROJECT":                                {"kind: Boat", "kind: ShipYard"},
	} {
		for _, text := range texts {
			if !strings.Contains(files[name], text) {
				t.Errorf("%s lacks %q:\n%s", name, text, files[name])
			}
		}
	}
	for name := range files {
		if strings.Contains(name, "ship") && !strings.Contains(name, "shipyard") {
			t.Errorf("%s has the old name", name)
		}
	}
}

func TestANameThatExistsIsAConflict(t *testing.T) {
	p := fleet(t)
	p.edit("api/v1/shipyard_types.go", "func init() {", "type BoatPhase int\n\nfunc init() {")
	p.edit("internal/dock/dock.go", "package dock", "package dock\n")
	plan, err := Rename(RenameOptions{Dir: p.dir, Group: "sea", Kind: "Ship", To: "Boat"})
	if err != nil {
		t.Fatal(err)
	}
	c := Conflicting(plan.Changes)
	if len(c) != 1 || c[0].Path != "api/v1/shipyard_types.go" || !strings.Contains(c[0].Conflicts[0].String(), "BoatPhase exists already") {
		t.Errorf("conflicts %+v", c)
	}
}

func TestRenamingTwiceChangesNothing(t *testing.T) {
	p := fleet(t)
	p.rename("Ship", "Boat")
	plan, err := Rename(RenameOptions{Dir: p.dir, Group: "sea", Kind: "Ship", To: "Boat"})
	if err != nil || len(plan.Changes) > 0 {
		t.Errorf("%v, %d changes", err, len(plan.Changes))
	}
}

func TestRenamingRefusesWhatCannotWork(t *testing.T) {
	p := fleet(t)
	before := p.files()
	for want, o := range map[string]RenameOptions{
		"--to is missing":     {Group: "sea", Kind: "Ship"},
		"--kind is missing":   {Group: "sea", To: "Ship"},
		"no API of kind Crew": {Group: "sea", Kind: "Crew", To: "Sailor"},
		"has a kind ShipYard": {Group: "sea", Kind: "Ship", To: "Shipyard"},
		"uppercase letter":    {Group: "sea", Kind: "Ship", To: "boat"},
	} {
		o.Dir = p.dir
		if _, err := Rename(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	p.same(before)
}

func TestAKindOfTheSameNameInAnotherGroupStays(t *testing.T) {
	p := newProject(t)
	p.run(Edit(EditOptions{Dir: p.dir, MultiGroup: true}))
	p.api("sea", "v1", "Ship")
	p.api("air", "v1", "Ship")
	before := p.files()
	p.rename("Ship", "Boat")
	after := p.files()
	if after["api/air/v1/ship_types.go"] != before["api/air/v1/ship_types.go"] {
		t.Error("the other kind was changed")
	}
	for _, text := range []string{"seacontroller.BoatReconciler{", "aircontroller.ShipReconciler{"} {
		if !strings.Contains(after["cmd/main.go"], text) {
			t.Errorf("cmd/main.go lacks %s:\n%s", text, after["cmd/main.go"])
		}
	}
	p.rename("Boat", "Ship")
	p.same(before)
}
