package scaffold

import (
	"strings"
	"testing"
)

func (p project) named(kind Kind, name string) {
	p.Helper()
	p.run(CreateAPI(APIOptions{Dir: p.dir, Kind: kind, Resource: true, Controller: true, ControllerName: name}))
}

func TestAKindCanHaveSeveralControllers(t *testing.T) {
	p := newProject(t)
	empty := p.files()
	p.api("sea", "v1", "Ship")
	p.named(ship, "ship-backup")
	one := p.files()
	for name, texts := range map[string][]string{
		"PROJECT":                                {"  controllers:\n  - name: ship\n  - name: ship-backup\n"},
		"cmd/main.go":                            {"controller.ShipReconciler{", "controller.ShipBackupReconciler{", `"sea-ship-backup"`},
		"internal/controller/ship_controller.go": {"type ShipReconciler struct", `Named("sea-ship")`, "ConfigMap"},
		"internal/controller/ship_backup_controller.go":      {"type ShipBackupReconciler struct", `Named("sea-ship-backup")`, "seav1.Ship"},
		"internal/controller/ship_backup_controller_test.go": {"&ShipBackupReconciler{", `Describe("ship-backup controller"`},
	} {
		for _, text := range texts {
			if !strings.Contains(one[name], text) {
				t.Errorf("%s lacks %q:\n%s", name, text, one[name])
			}
		}
	}
	if project := one["PROJECT"]; strings.Contains(project, "controller: true") {
		t.Errorf("PROJECT has both forms, of which kubebuilder reads only one:\n%s", project)
	}

	for _, name := range []string{"", "ship", "ship-backup"} {
		p.named(ship, name)
		p.same(one)
	}
	p.run(Edit(EditOptions{Dir: p.dir, MultiGroup: true}))
	if main := p.files()["cmd/main.go"]; !strings.Contains(main, "seacontroller.ShipBackupReconciler{") {
		t.Errorf("main.go does not use the moved package:\n%s", main)
	}
	p.run(Edit(EditOptions{Dir: p.dir}))
	p.same(one)
	p.rename("Ship", "Boat")
	files := p.files()
	if main := files["cmd/main.go"]; !strings.Contains(main, "controller.BoatBackupReconciler{") || files["internal/controller/boat_backup_controller.go"] == "" {
		t.Errorf("the controller has not been renamed with its kind:\n%s", main)
	}
	p.rename("Boat", "Ship")
	p.same(one)
	p.run(Delete(DeleteOptions{Dir: p.dir, Kind: ship}))
	p.same(empty)
}

func TestTheFirstControllerOfAKindCanHaveAName(t *testing.T) {
	for _, kind := range []Kind{ship, {Group: "apps", Version: "v1", Kind: "Deployment"}} {
		p := newProject(t)
		p.run(CreateAPI(APIOptions{Dir: p.dir, Kind: kind, Resource: kind == ship, Controller: true, ControllerName: "captain"}))
		files := p.files()
		for name, text := range map[string]string{
			"PROJECT":     "controllers:\n  - name: captain\n",
			"cmd/main.go": "controller.CaptainReconciler{",
			"internal/controller/captain_controller.go":      "type CaptainReconciler struct",
			"internal/controller/captain_controller_test.go": "&CaptainReconciler{",
			agentsPath: "`internal/controller/captain_controller.go`",
		} {
			if !strings.Contains(files[name], text) {
				t.Errorf("%s lacks %q:\n%s", name, text, files[name])
			}
		}
	}
}
