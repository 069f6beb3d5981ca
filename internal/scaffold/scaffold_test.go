package scaffold

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// project is a project in a temporary folder.
type project struct {
	*testing.T
	dir string
}

func newProject(t *testing.T) project {
	t.Helper()
	p := project{t, filepath.Join(t.TempDir(), "harbour")}
	p.run(Init(InitOptions{Dir: p.dir, Domain: "example.com", Repo: "example.com/harbour"}))
	return p
}

// run carries out a plan that must have no conflicts.
func (p project) run(plan *Plan, err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
	for _, c := range Conflicting(plan.Changes) {
		p.Fatalf("%s: %s", c.Path, c.Conflicts[0])
	}
	if err := Write(plan.Dir, plan.Changes); err != nil {
		p.Fatal(err)
	}
}

func (p project) api(group, version, kind string) {
	p.Helper()
	p.run(CreateAPI(APIOptions{Dir: p.dir, Kind: Kind{Group: group, Version: version, Kind: kind}, Resource: true, Controller: true}))
}

func (p project) shaped(shape, group, version, kind string) {
	p.Helper()
	p.run(CreateAPI(APIOptions{
		Dir: p.dir, Kind: Kind{Group: group, Version: version, Kind: kind},
		Resource: true, Controller: true, Shape: shape,
	}))
}

func (p project) webhook(o WebhookOptions) {
	p.Helper()
	o.Dir = p.dir
	p.run(CreateWebhook(o))
}

// files returns the contents of all files.
func (p project) files() map[string]string {
	p.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(p.dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		rel, _ := filepath.Rel(p.dir, file)
		all[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		p.Fatal(err)
	}
	return all
}

func (p project) write(name, content string) {
	p.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o644); err != nil {
		p.Fatal(err)
	}
}

// edit replaces a text that must be in the file.
func (p project) edit(name, old, text string) {
	p.Helper()
	content := p.files()[name]
	if !strings.Contains(content, old) {
		p.Fatalf("%s does not contain %q:\n%s", name, old, content)
	}
	p.write(name, strings.Replace(content, old, text, 1))
}

func (p project) same(want map[string]string) {
	p.Helper()
	if diff := cmp.Diff(want, p.files()); diff != "" {
		p.Error(diff)
	}
}

var ship = Kind{Group: "sea", Version: "v1", Kind: "Ship"}

func TestFilesParseAndContainNoNameOfTheExample(t *testing.T) {
	p := newProject(t)
	p.api("sea", "v1", "Ship")
	p.api("sea", "v1beta1", "Ship")
	p.api("sea", "v1", "Map") // a keyword of Go
	p.webhook(WebhookOptions{Kind: ship, Defaulting: true, Validation: true, Conversion: true, Spokes: []string{"v1beta1"}})
	p.webhook(WebhookOptions{Kind: Kind{Group: "sea", Version: "v1", Kind: "Map"}, Validation: true})
	p.run(Edit(EditOptions{Dir: p.dir, MultiGroup: true}))
	p.shaped(ShapeExternal, "land", "v1", "Car")
	p.shaped(ShapeExternal, "land", "v1", "Ship") // the same kind in two groups
	p.run(CreateAPI(APIOptions{Dir: p.dir, Kind: Kind{Group: "apps", Version: "v1", Kind: "Deployment"}, Controller: true}))
	p.parses()

	p = newProject(t)
	p.shaped(ShapeClientGo, "sea", "v1", "Ship")
	p.api("sea", "v1beta1", "Ship")
	p.api("sea", "v1", "Map")
	p.run(Edit(EditOptions{Dir: p.dir, MultiGroup: true}))
	p.run(CreateAPI(APIOptions{Dir: p.dir, Kind: Kind{Group: "land", Version: "v1", Kind: "Ship"}, Resource: true, Controller: true, ClusterScoped: true}))
	p.parses()
}

// parses requires that the files parse and contain no name of the example.
func (p project) parses() {
	p.Helper()
	for name, content := range p.files() {
		for _, word := range []string{"xemplar", "EXEMPLAR", "GALLERY", "v1alpha7", "v1alpha8", "koboshi.example", "<<<<", "2099"} {
			if strings.Contains(name+content, word) {
				p.Errorf("%s contains %q", name, word)
			}
		}
		switch path.Ext(name) {
		case ".go":
			if _, err := parser.ParseFile(token.NewFileSet(), name, content, 0); err != nil {
				p.Error(err)
			}
		case ".yaml":
			var any any
			if err := yaml.Unmarshal([]byte(content), &any); err != nil {
				p.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestAManagerStopsBeforeItsPodIsKilled(t *testing.T) {
	for shape, cmd := range map[string]string{ShapeChildren: "cmd/options.go", ShapeClientGo: "cmd/election.go"} {
		p := newProject(t)
		p.shaped(shape, "sea", "v1", "Ship")
		files := p.files()
		seconds := func(name, pattern string) int {
			found := regexp.MustCompile(pattern).FindStringSubmatch(files[name])
			if found == nil {
				t.Fatalf("%s does not match %s", name, pattern)
			}
			n, err := strconv.Atoi(found[1])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		takes := seconds(cmd, `shutdownTimeout = (\d+) \* time\.Second`)
		if grace := seconds("config/manager/manager.yaml", `terminationGracePeriodSeconds: (\d+)`); takes >= grace {
			t.Errorf("%s: the manager may take %d s to stop, and its Pod is killed after %d s", shape, takes, grace)
		}
	}
}

func TestACommandRunTwiceChangesNothing(t *testing.T) {
	p := newProject(t)
	commands := []func() (*Plan, error){
		func() (*Plan, error) {
			return Init(InitOptions{Dir: p.dir, Domain: "example.com", Repo: "example.com/harbour"})
		},
		func() (*Plan, error) {
			return CreateAPI(APIOptions{Dir: p.dir, Kind: ship, Resource: true, Controller: true})
		},
		func() (*Plan, error) {
			return CreateWebhook(WebhookOptions{Dir: p.dir, Kind: ship, Defaulting: true, Validation: true})
		},
		func() (*Plan, error) { return Edit(EditOptions{Dir: p.dir, MultiGroup: true}) },
	}
	for i, command := range commands {
		p.run(command())
		plan, err := command()
		if err != nil || len(plan.Changes) > 0 {
			t.Errorf("command %d: %v, %d changes", i, err, len(plan.Changes))
		}
	}
}

func TestDeletingUndoesCreating(t *testing.T) {
	p := newProject(t)
	empty := p.files()
	p.api("sea", "v1", "Ship")
	one := p.files()
	p.api("sea", "v1", "Port")
	p.webhook(WebhookOptions{Kind: ship, Defaulting: true})
	p.webhook(WebhookOptions{Kind: ship, Validation: true})

	p.run(Delete(DeleteOptions{Dir: p.dir, Kind: Kind{Group: "sea", Version: "v1", Kind: "Port"}}))
	p.run(Delete(DeleteOptions{Dir: p.dir, Kind: ship, Webhooks: true}))
	p.same(one)
	p.shaped(ShapeExternal, "sea", "v1", "Port")
	p.run(Delete(DeleteOptions{Dir: p.dir, Kind: Kind{Group: "sea", Version: "v1", Kind: "Port"}}))
	p.same(one)
	p.run(Delete(DeleteOptions{Dir: p.dir, Kind: ship}))
	p.same(empty)

	p.shaped(ShapeClientGo, "sea", "v1", "Ship")
	one = p.files()
	p.api("sea", "v1", "Port")
	p.run(Delete(DeleteOptions{Dir: p.dir, Kind: Kind{Group: "sea", Version: "v1", Kind: "Port"}}))
	p.same(one)
	p.run(Delete(DeleteOptions{Dir: p.dir, Kind: ship}))
	p.same(empty)
}

func TestWebhooksAddedOneByOneAreThoseAddedTogether(t *testing.T) {
	together, apart := newProject(t), newProject(t)
	for _, p := range []project{together, apart} {
		p.api("sea", "v1", "Ship")
	}
	together.webhook(WebhookOptions{Kind: ship, Defaulting: true, Validation: true})
	apart.webhook(WebhookOptions{Kind: ship, Defaulting: true})
	apart.webhook(WebhookOptions{Kind: ship, Validation: true})
	apart.same(together.files())
}

func TestSeveralGroupsAndBackMovesEveryFile(t *testing.T) {
	p := newProject(t)
	p.api("sea", "v1", "Ship")
	p.webhook(WebhookOptions{Kind: ship, Defaulting: true})
	p.edit("api/v1/ship_types.go", "\tText string", "\t// depth is in metres.\n\tDepth int32 `json:\"depth,omitempty\"`\n\n\tText string")
	if err := os.MkdirAll(filepath.Join(p.dir, "internal", "harbour"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.write("internal/harbour/harbour.go", "package harbour\n\nimport seav1 \"example.com/harbour/api/v1\"\n\nvar Ship seav1.Ship\n")
	before := p.files()
	p.run(Edit(EditOptions{Dir: p.dir, MultiGroup: true}))
	after := p.files()
	if !strings.Contains(after["api/sea/v1/ship_types.go"], "Depth int32") || after["api/v1/ship_types.go"] != "" {
		t.Errorf("the types have not moved: %q", after["api/sea/v1/ship_types.go"])
	}
	if !strings.Contains(after["internal/harbour/harbour.go"], `"example.com/harbour/api/sea/v1"`) {
		t.Errorf("an import has not changed:\n%s", after["internal/harbour/harbour.go"])
	}
	if !strings.Contains(after["cmd/main.go"], "seacontroller.ShipReconciler{") {
		t.Errorf("main.go does not use the moved package:\n%s", after["cmd/main.go"])
	}
	p.api("land", "v1", "Ship")
	p.run(Delete(DeleteOptions{Dir: p.dir, Kind: Kind{Group: "land", Version: "v1", Kind: "Ship"}}))
	p.run(Edit(EditOptions{Dir: p.dir}))
	p.same(before)
}

func TestEditsOfAPersonSurvive(t *testing.T) {
	p := newProject(t)
	p.api("sea", "v1", "Ship")
	p.edit("cmd/main.go", "// +kubebuilder:scaffold:builder\n", "")
	p.edit("cmd/main.go", "setupLog.Info(\"Starting the manager\")", "setupLog.Info(\"Casting off\")")
	p.edit("config/default/kustomization.yaml", "#- ../prometheus", "- ../prometheus")
	p.edit("config/crd/kustomization.yaml", "resources:\n", "resources:\n- own.yaml\n")
	p.edit("api/v1/ship_types.go", "type ShipSpec struct {", "type ShipSpec struct {\n\t// Mine.\n\tMine string `json:\"mine\"`\n")
	p.edit("Makefile", "##@ Development", "##@ Shipbuilding")

	p.api("sea", "v1", "Port")
	p.webhook(WebhookOptions{Kind: ship, Defaulting: true, Validation: true})
	p.api("sea", "v1beta1", "Ship")

	files := p.files()
	for name, texts := range map[string][]string{
		"cmd/main.go":                       {"Casting off", "PortReconciler", "SetupShipWebhookWithManager", "seav1beta1.AddToScheme"},
		"config/default/kustomization.yaml": {"\n- ../prometheus", "- ../webhook", "certificate_replacements.yaml"},
		"config/crd/kustomization.yaml":     {"- own.yaml", "_ports.yaml"},
		"api/v1/ship_types.go":              {"Mine string", "+kubebuilder:storageversion"},
		"Makefile":                          {"##@ Shipbuilding"},
	} {
		for _, text := range texts {
			if !strings.Contains(files[name], text) {
				t.Errorf("%s lacks %q:\n%s", name, text, files[name])
			}
		}
	}
	if strings.Count(files["cmd/main.go"], "seav1.AddToScheme") != 1 {
		t.Errorf("seav1 is not registered once:\n%s", files["cmd/main.go"])
	}
}

func TestAShapeCanBeChangedAndStaysOtherwise(t *testing.T) {
	p := newProject(t)
	p.api("sea", "v1", "Ship")
	children := p.files()
	p.shaped(ShapeExternal, "sea", "v1", "Ship")
	external := p.files()
	if types := external["api/v1/ship_types.go"]; !strings.Contains(types, "External *ShipExternal") {
		t.Errorf("the types do not have the shape:\n%s", types)
	}
	if main := external["cmd/main.go"]; !strings.Contains(main, `os.Getenv("SEA_SHIP_STORE")`) {
		t.Errorf("the controller does not have the shape:\n%s", main)
	}
	p.api("sea", "v1", "Ship")
	p.same(external)
	p.run(CreateAPI(APIOptions{Dir: p.dir, Kind: ship, Resource: true, Controller: true, Shape: ShapeChildren}))
	p.same(children)
	p.shaped(ShapeClientGo, "sea", "v1", "Ship")
	if main := p.files()["cmd/main.go"]; !strings.Contains(main, "controller.AddShip(op)") || strings.Contains(main, "controller-runtime") {
		t.Errorf("the manager does not have the shape:\n%s", main)
	}
	p.api("sea", "v1", "Port") // has the same shape
	if controller := p.files()["internal/controller/port_controller.go"]; !strings.Contains(controller, "Ports(obj.Namespace)") {
		t.Errorf("the controller does not have the shape of the project:\n%s", controller)
	}
	p.run(Delete(DeleteOptions{Dir: p.dir, Kind: Kind{Group: "sea", Version: "v1", Kind: "Port"}}))
	p.run(CreateAPI(APIOptions{Dir: p.dir, Kind: ship, Resource: true, Controller: true, Shape: ShapeChildren}))
	p.same(children)
}

func TestThePackagesOfClientsMoveWithTheirGroup(t *testing.T) {
	p := newProject(t)
	p.shaped(ShapeClientGo, "sea", "v1", "Ship")
	if err := os.MkdirAll(filepath.Join(p.dir, "internal", "harbour"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.write("internal/harbour/harbour.go", "package harbour\n\nimport listers \"example.com/harbour/pkg/generated/listers/api/v1\"\n\nvar Ships listers.ShipLister\n")
	before := p.files()
	p.run(Edit(EditOptions{Dir: p.dir, MultiGroup: true}))
	after := p.files()
	if after["pkg/generated/listers/sea/v1/ship.go"] == "" || after["pkg/generated/listers/api/v1/ship.go"] != "" {
		t.Error("the listers have not moved")
	}
	for _, name := range []string{"internal/harbour/harbour.go", "internal/controller/sea/ship_controller.go"} {
		if !strings.Contains(after[name], `"example.com/harbour/pkg/generated/listers/sea/v1"`) {
			t.Errorf("%s does not import the package that has moved:\n%s", name, after[name])
		}
	}
	p.run(Edit(EditOptions{Dir: p.dir}))
	p.same(before)
}

func TestTheClientsOfAnIrregularKindHaveTheNamesThatCodeGeneratorGivesThem(t *testing.T) {
	p := newProject(t)
	p.run(CreateAPI(APIOptions{Dir: p.dir, Kind: Kind{Group: "sea", Version: "v1", Kind: "Person"}, Resource: true, Controller: true, Shape: ShapeClientGo}))
	p.run(CreateAPI(APIOptions{Dir: p.dir, Kind: Kind{Group: "sea", Version: "v1", Kind: "Policy"}, Resource: true, Controller: true, ClusterScoped: true}))
	files := p.files()
	for name, texts := range map[string][]string{
		"api/v1/person_types.go":                   {"// +genclient\n// +resourceName=people\n"},
		"internal/controller/person_controller.go": {"SeaV1().Persons(obj.Namespace)", "resources=people,"},
		"api/v1/policy_types.go":                   {"// +genclient\n// +genclient:nonNamespaced\n// +kubebuilder"},
		"internal/controller/policy_controller.go": {"SeaV1().Policies().Get(", "c.lister.Get(name.Name)", `NewObjectName("", owner.Name)`},
	} {
		for _, text := range texts {
			if !strings.Contains(files[name], text) {
				t.Errorf("%s lacks %q:\n%s", name, text, files[name])
			}
		}
	}
}

func TestAProjectHasControllersWithClientGoAloneOrNone(t *testing.T) {
	for name, c := range map[string]struct {
		before func(project)
		o      APIOptions
		want   string
	}{
		"after children":     {func(p project) { p.api("sea", "v1", "Port") }, APIOptions{Resource: true, Shape: ShapeClientGo}, "in a project of its own, or omit --shape client-go"},
		"children after":     {func(p project) { p.shaped(ShapeClientGo, "sea", "v1", "Port") }, APIOptions{Resource: true, Shape: ShapeChildren}, "use --shape client-go"},
		"a kind without API": {func(p project) { p.shaped(ShapeClientGo, "sea", "v1", "Port") }, APIOptions{Kind: Kind{Group: "apps", Version: "v1", Kind: "Deployment"}}, "can reconcile only kinds that the project defines"},
		"webhooks": {func(p project) {
			p.api("sea", "v1", "Ship")
			p.webhook(WebhookOptions{Kind: ship, Defaulting: true})
		}, APIOptions{Resource: true, Shape: ShapeClientGo}, "koboshi delete webhook"},
		"a group that is no Go name": {func(p project) { p.run(Edit(EditOptions{Dir: p.dir, MultiGroup: true})) },
			APIOptions{Kind: Kind{Group: "deep-sea", Version: "v1", Kind: "Ship"}, Resource: true, Shape: ShapeClientGo}, "letters and digits"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			c.before(p)
			before := p.files()
			c.o.Dir, c.o.Controller = p.dir, true
			if c.o.Kind.Kind == "" {
				c.o.Kind = ship
			}
			if _, err := CreateAPI(c.o); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is %v, want %q", err, c.want)
			}
			p.same(before)
		})
	}
	p := newProject(t)
	p.shaped(ShapeClientGo, "sea", "v1", "Ship")
	if _, err := CreateWebhook(WebhookOptions{Dir: p.dir, Kind: ship, Validation: true}); err == nil || !strings.Contains(err.Error(), "XValidation") {
		t.Errorf("the error is %v", err)
	}
}

func TestTheListOfKindsIsKeptUpToDateAndTheRestOfTheFileStays(t *testing.T) {
	p := newProject(t)
	p.edit(agentsPath, "# harbour\n", "# Our harbour\n")
	mine := p.files()[agentsPath]
	p.api("sea", "v1", "Ship")
	p.webhook(WebhookOptions{Kind: ship, Validation: true})
	p.run(CreateAPI(APIOptions{Dir: p.dir, Kind: Kind{Group: "apps", Version: "v1", Kind: "Deployment"}, Controller: true}))
	const rows = "| Ship sea.example.com/v1 | `api/v1/ship_types.go` | `internal/controller/ship_controller.go` | `internal/webhook/v1/ship_webhook.go` | `check/sea_v1_ship.yaml` |\n" +
		"| Deployment apps/v1 | | `internal/controller/deployment_controller.go` | | |\n"
	listed := p.files()[agentsPath]
	if !strings.HasPrefix(listed, "# Our harbour\n") || !strings.Contains(listed, rows) {
		t.Errorf("%s is\n%s", agentsPath, listed)
	}

	// kubebuilder changes PROJECT, but not this file.
	p.write(agentsPath, mine)
	p.run(Agents(p.dir))
	if got := p.files()[agentsPath]; got != listed {
		t.Errorf("%s is\n%s", agentsPath, got)
	}
	if plan, err := Agents(p.dir); err != nil || len(plan.Changes) > 0 {
		t.Errorf("%v, %d changes", err, len(plan.Changes))
	}

	p.write(agentsPath, "mine\n")
	p.run(Agents(p.dir))
	p.api("sea", "v1", "Port")
	if got := p.files()[agentsPath]; got != "mine\n" {
		t.Errorf("a file without a list was changed:\n%s", got)
	}
}

func TestAnEditedFileIsNotDeleted(t *testing.T) {
	p := newProject(t)
	p.api("sea", "v1", "Ship")
	p.edit("internal/controller/ship_controller.go", "package controller", "// Mine.\npackage controller")
	plan, err := Delete(DeleteOptions{Dir: p.dir, Kind: ship})
	if err != nil {
		t.Fatal(err)
	}
	if c := Conflicting(plan.Changes); len(c) != 1 || c[0].Path != "internal/controller/ship_controller.go" {
		t.Errorf("conflicts %+v", c)
	}
	p.run(Delete(DeleteOptions{Dir: p.dir, Kind: ship, Force: true}))
	if files := p.files(); files["internal/controller/ship_controller.go"] != "" {
		t.Error("--force did not delete the file")
	}
}

func TestBadInputIsRefusedAndChangesNothing(t *testing.T) {
	p := newProject(t)
	p.api("sea", "v1", "Ship")
	before := p.files()
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, []byte("All rights reserved.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	api := func(k Kind, resource, controller bool) func() (*Plan, error) {
		return func() (*Plan, error) {
			return CreateAPI(APIOptions{Dir: p.dir, Kind: k, Resource: resource, Controller: controller})
		}
	}
	hook := func(o WebhookOptions) func() (*Plan, error) {
		o.Dir = p.dir
		return func() (*Plan, error) { return CreateWebhook(o) }
	}
	for want, command := range map[string]func() (*Plan, error){
		"--kind is missing":         api(Kind{Group: "sea", Version: "v1"}, true, true),
		"uppercase letter":          api(Kind{Group: "sea", Version: "v1", Kind: "ship"}, true, true),
		"use a version such as v1":  api(Kind{Group: "sea", Version: "1.0", Kind: "Port"}, true, true),
		`group "Sea.example.com"`:   api(Kind{Group: "Sea", Version: "v1", Kind: "Port"}, true, true),
		"koboshi edit --multigroup": api(Kind{Group: "land", Version: "v1", Kind: "Car"}, true, true),
		"nothing to create":         api(ship, false, false),
		"would have the same Go type": func() (*Plan, error) {
			return CreateAPI(APIOptions{Dir: p.dir, Kind: Kind{Group: "sea", Version: "v1", Kind: "Port"}, Resource: true, Controller: true, ControllerName: "sh-ip"})
		},
		`--controller-name "A"`: func() (*Plan, error) {
			return CreateAPI(APIOptions{Dir: p.dir, Kind: ship, Controller: true, ControllerName: "A"})
		},
		"--controller is false": func() (*Plan, error) {
			return CreateAPI(APIOptions{Dir: p.dir, Kind: ship, Resource: true, ControllerName: "a"})
		},
		"use --version v1": func() (*Plan, error) {
			return CreateAPI(APIOptions{Dir: p.dir, Kind: Kind{Group: "sea", Version: "v2", Kind: "Ship"}, Resource: true, Controller: true, ControllerName: "a"})
		},
		`unknown shape "ball"`: func() (*Plan, error) {
			return CreateAPI(APIOptions{Dir: p.dir, Kind: ship, Resource: true, Controller: true, Shape: "ball"})
		},
		"omit --shape": func() (*Plan, error) {
			return CreateAPI(APIOptions{Dir: p.dir, Kind: ship, Resource: true, Shape: ShapeExternal})
		},
		"no API for kind Port":         api(Kind{Group: "sea", Version: "v1", Kind: "Port"}, false, true),
		"run koboshi create api first": hook(WebhookOptions{Kind: Kind{Group: "sea", Version: "v1", Kind: "Port"}, Defaulting: true}),
		"use --defaulting":             hook(WebhookOptions{Kind: ship}),
		"--spoke needs --conversion":   hook(WebhookOptions{Kind: ship, Defaulting: true, Spokes: []string{"v2"}}),
		"create api --version v2":      hook(WebhookOptions{Kind: ship, Conversion: true, Spokes: []string{"v2"}}),
		"cannot be its own spoke":      hook(WebhookOptions{Kind: ship, Conversion: true, Spokes: []string{"v1"}}),
		"has no API of kind Boat": func() (*Plan, error) {
			return Delete(DeleteOptions{Dir: p.dir, Kind: Kind{Group: "sea", Version: "v1", Kind: "Boat"}})
		},
		"has no webhook of kind Ship": func() (*Plan, error) { return Delete(DeleteOptions{Dir: p.dir, Kind: ship, Webhooks: true}) },
		"holds the project harbour": func() (*Plan, error) {
			return Init(InitOptions{Dir: p.dir, Domain: "other.example", Repo: "example.com/harbour"})
		},
		"run koboshi init first": func() (*Plan, error) { return Edit(EditOptions{Dir: t.TempDir(), MultiGroup: true}) },
		"give it with --repo":    func() (*Plan, error) { return Init(InitOptions{Dir: t.TempDir(), Domain: "example.com"}) },
		`domain "Example"`: func() (*Plan, error) {
			return Init(InitOptions{Dir: t.TempDir(), Domain: "Example", Repo: "a.example/b"})
		},
		"is not the path of a Go module": func() (*Plan, error) {
			return Init(InitOptions{Dir: t.TempDir(), Domain: "example.com", Repo: "https://x"})
		},
		"go.mod names the module": func() (*Plan, error) {
			return Init(InitOptions{Dir: p.dir, Domain: "example.com", Repo: "a.example/b"})
		},
		`unknown license "mit"`: func() (*Plan, error) {
			return Init(InitOptions{Dir: t.TempDir(), Domain: "example.com", Repo: "a.example/b", License: "mit"})
		},
		"text.txt:1: this is not a Go comment": func() (*Plan, error) {
			return Init(InitOptions{Dir: t.TempDir(), Domain: "example.com", Repo: "a.example/b", LicenseFile: text})
		},
		"omit --license": func() (*Plan, error) {
			return Init(InitOptions{Dir: t.TempDir(), Domain: "example.com", Repo: "a.example/b", LicenseFile: text, Owner: "Crew"})
		},
		"no such file": func() (*Plan, error) {
			return Init(InitOptions{Dir: t.TempDir(), Domain: "example.com", Repo: "a.example/b", LicenseFile: text + "x"})
		},
		"--owner \"*/ package x": func() (*Plan, error) {
			return Init(InitOptions{Dir: t.TempDir(), Domain: "example.com", Repo: "a.example/b", Owner: "*/ package x /*"})
		},
	} {
		plan, err := command()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the error is %v, want %q; plan %+v", err, want, plan)
		}
	}
	p.same(before)
}

func TestAFolderWithOtherFilesIsRefused(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"README.md", "LICENSE", ".gitignore", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("mine\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := InitOptions{Dir: dir, Name: "harbour", Domain: "example.com", Repo: "example.com/harbour"}
	if _, err := Init(o); err == nil || !strings.Contains(err.Error(), "notes.txt") {
		t.Errorf("the error is %v", err)
	}
}

func TestTheModuleOfGoModIsUsed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/harbour\n\ngo 1.26\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := project{t, dir}
	p.run(Init(InitOptions{Dir: dir, Name: "harbour", Domain: "example.com"}))
	if mod := p.files()["go.mod"]; !strings.HasPrefix(mod, "module example.com/harbour\n") || !strings.Contains(mod, "controller-runtime") {
		t.Errorf("go.mod is\n%s", mod)
	}
}

func TestSharedTestFilesAreAddedToAProjectThatLacksThem(t *testing.T) {
	p := newProject(t)
	p.api("sea", "v1", "Ship")
	if err := os.Remove(filepath.Join(p.dir, "internal/controller/manager_test.go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(p.dir, "internal/controller/ship_controller_test.go")); err != nil {
		t.Fatal(err)
	}
	p.api("sea", "v1", "Port")
	files := p.files()
	if files["internal/controller/manager_test.go"] == "" {
		t.Error("the file that the tests of the new controller need is missing")
	}
	if files["internal/controller/ship_controller_test.go"] != "" {
		t.Error("a file that a person has deleted is there again")
	}
}

func TestForceDoesNotReplaceCodeThatCannotBeMerged(t *testing.T) {
	p := newProject(t)
	p.write("cmd/main.go", "package main\n\nfunc main() {}\n")
	plan, err := CreateAPI(APIOptions{Dir: p.dir, Kind: ship, Resource: true, Controller: true, Force: true})
	if err != nil {
		t.Fatal(err)
	}
	if c := Conflicting(plan.Changes); len(c) != 1 || c[0].Path != "cmd/main.go" {
		t.Errorf("conflicts %+v", c)
	}
}

func TestEachGoFileBeginsWithTheHeaderOfTheProject(t *testing.T) {
	year := strconv.Itoa(time.Now().Year())
	own := filepath.Join(t.TempDir(), "own.txt")
	if err := os.WriteFile(own, []byte("// Copyright YEAR Crew\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		InitOptions
		boilerplate, top string
	}{
		"default":         {InitOptions{}, "/*\nLicensed under the Apache", "/*\nLicensed under the Apache"},
		"owner":           {InitOptions{Owner: "Crew"}, "/*\nCopyright " + year + " Crew.\n\nLicensed under the Apache", "/*\nCopyright " + year + " Crew.\n\nLicensed under the Apache"},
		"none":            {InitOptions{License: "none"}, "", "package v1\n"},
		"owner, none":     {InitOptions{License: "none", Owner: "Crew Inc."}, "/*\nCopyright " + year + " Crew Inc.\n*/\n", "/*\nCopyright " + year + " Crew Inc.\n*/\n\npackage v1\n"},
		"file of its own": {InitOptions{LicenseFile: own}, "// Copyright " + year + " Crew\n", "// Copyright " + year + " Crew\n\npackage v1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := project{t, t.TempDir()}
			c.Dir, c.Name, c.Domain, c.Repo = p.dir, "harbour", "example.com", "example.com/harbour"
			p.run(Init(c.InitOptions))
			p.api("sea", "v1", "Ship")
			p.api("sea", "v1beta1", "Ship")
			p.webhook(WebhookOptions{Kind: ship, Defaulting: true, Validation: true, Conversion: true, Spokes: []string{"v1beta1"}})
			deployment := Kind{Group: "apps", Version: "v1", Kind: "Deployment"}
			p.run(CreateAPI(APIOptions{Dir: p.dir, Kind: deployment, Controller: true}))
			p.webhook(WebhookOptions{Kind: deployment, Defaulting: true, Validation: true})
			files := p.files()
			if got := files[headerPath]; !strings.HasPrefix(got, c.boilerplate) || c.boilerplate == "" && got != "" {
				t.Errorf("%s is %q", headerPath, got)
			}
			if got := files["api/v1/ship_types.go"]; !strings.HasPrefix(got, c.top) {
				t.Errorf("ship_types.go begins with %q, want %q", got[:min(len(got), 80)], c.top)
			}
			for file, content := range files {
				if path.Ext(file) == ".go" && strings.Contains(content, "Apache") != strings.Contains(c.top, "Apache") {
					t.Errorf("%s has a license other than the project:\n%s", file, content)
				}
			}
		})
	}
}

func TestTheYearInTheHeaderOfAProjectIsReplacedInNewFiles(t *testing.T) {
	p := newProject(t)
	p.write(headerPath, "// Copyright YEAR Crew\n")
	p.api("sea", "v1", "Ship")
	files := p.files()
	want := "// Copyright " + strconv.Itoa(time.Now().Year()) + " Crew\n\npackage v1\n"
	if types := files["api/v1/ship_types.go"]; !strings.HasPrefix(types, want) || files[headerPath] != "// Copyright YEAR Crew\n" {
		t.Errorf("%s is %q, and ship_types.go is\n%s", headerPath, files[headerPath], types)
	}
}

func TestDeletingIgnoresTheYearInTheHeader(t *testing.T) {
	p := newProject(t)
	p.write(headerPath, "// Copyright 2024 Crew\n")
	empty := p.files()
	p.api("sea", "v1", "Ship")
	if types := p.files()["api/v1/ship_types.go"]; !strings.HasPrefix(types, "// Copyright 2024 Crew\n\npackage") {
		t.Errorf("the header of the project is not used:\n%s", types)
	}
	p.write(headerPath, "// Copyright 2025 Crew\n")
	p.run(Delete(DeleteOptions{Dir: p.dir, Kind: ship}))
	empty[headerPath] = "// Copyright 2025 Crew\n"
	p.same(empty)
}
