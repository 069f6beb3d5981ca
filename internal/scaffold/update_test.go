package scaffold

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// past returns templates that an earlier version of koboshi might have had.
func past(t *testing.T) Templates {
	t.Helper()
	old := maps.Clone(embedded())
	replace := func(name, is, was string) {
		t.Helper()
		if !bytes.Contains(old[name], []byte(is)) {
			t.Fatalf("%s does not contain %q", name, is)
		}
		old[name] = bytes.ReplaceAll(old[name], []byte(is), []byte(was))
	}
	for _, layer := range []string{"init", "scheme", "controller", "external", "webhook"} {
		replace(layer+"/cmd/main.go", "Starting the manager", "starting")
	}
	replace("init/cmd/options.go", "\n// options holds", "\n// Old has been removed since.\nconst Old = true\n\n// options holds")
	replace("init/Makefile", "go vet ./...", "go vet ./... ./internal/...")
	replace("init/config/manager/manager.yaml", "replicas: 1", "replicas: 2")
	replace("init/gomod", "sigs.k8s.io/controller-runtime v0.25.2", "sigs.k8s.io/controller-runtime v0.24.0")
	replace("init/gosum", "sigs.k8s.io/controller-runtime v0.25.2", "sigs.k8s.io/controller-runtime v0.24.0")
	replace("controller/internal/controller/exemplar_controller.go", "package controller", "// Package controller is old.\npackage controller")
	replace("validation/internal/webhook/v1alpha7/exemplar_validator.go", "obj *galleryv1alpha7.Exemplar", "old *galleryv1alpha7.Exemplar")
	old["init/hack/old.sh"] = []byte("#!/bin/sh\n# exampleproject is old.\n")
	delete(old, "init/.github/workflows/lint.yml")
	return old
}

// to moves a project to other templates.
func (p project) to(t Templates) {
	p.Helper()
	p.run(UpdateOptions{Dir: p.dir}.update(record{t, ownVersion()}))
}

// harbour adds kinds, webhooks and groups to a project.
func (p project) harbour() {
	p.Helper()
	p.api("sea", "v1", "Ship")
	p.api("sea", "v1", "Dock")
	p.webhook(WebhookOptions{Kind: ship, Defaulting: true, Validation: true})
	p.run(Edit(EditOptions{Dir: p.dir, MultiGroup: true}))
	p.shaped(ShapeExternal, "land", "v1", "Car")
	p.run(Delete(DeleteOptions{Dir: p.dir, Kind: Kind{Group: "sea", Version: "v1", Kind: "Dock"}}))
	p.rename("Ship", "Boat")
}

func TestAnUpdatedProjectIsWhatTheNewVersionWouldHaveMade(t *testing.T) {
	oldest, newest := newProject(t), newProject(t)
	oldest.to(past(t))
	oldest.harbour()
	newest.harbour()
	was, want := oldest.files(), newest.files()
	for name, text := range map[string]string{
		"cmd/main.go": `"starting"`, "go.mod": "controller-runtime v0.24.0", "hack/old.sh": "harbour is old",
		"internal/controller/sea/boat_controller.go": "controller is old",
	} {
		if !strings.Contains(was[name], text) {
			t.Fatalf("%s was not made by the old templates:\n%s", name, was[name])
		}
	}
	oldest.to(embedded())
	oldest.same(want)
	newest.to(past(t))
	newest.same(was)
}

func TestEditsOfAPersonSurviveAnUpdate(t *testing.T) {
	p := newProject(t)
	p.to(past(t))
	p.api("sea", "v1", "Ship")
	p.edit("cmd/main.go", "func main() {", "func main() {\n\tprintln(\"Casting off\")")
	p.edit("Makefile", "##@ Development", "##@ Shipbuilding")
	p.edit("go.mod", "k8s.io/api v0.37.0", "k8s.io/api v0.38.0")
	p.edit("go.mod", "require (\n", "require (\n\texample.net/anchor v1.2.3\n")
	p.edit("go.sum", "cel.dev/expr", "a.example/rope v1.0.0 h1:cm9wZQ==\ncel.dev/expr")
	p.edit(agentsPath, "# harbour", "# Our harbour")
	if err := os.Remove(filepath.Join(p.dir, "Dockerfile")); err != nil {
		t.Fatal(err)
	}
	p.run(Update(UpdateOptions{Dir: p.dir}))
	files := p.files()
	for name, texts := range map[string][]string{
		"cmd/main.go":                {"Casting off", "Starting the manager", "ShipReconciler"},
		"Makefile":                   {"##@ Shipbuilding", "go vet ./...\n"},
		"go.mod":                     {"k8s.io/api v0.38.0", "example.net/anchor v1.2.3", "controller-runtime v0.25.2"},
		"go.sum":                     {"a.example/rope v1.0.0 h1:cm9wZQ==", "controller-runtime v0.25.2"},
		agentsPath:                   {"# Our harbour", "| Ship sea.example.com/v1 |"},
		".github/workflows/lint.yml": {"lint"},
	} {
		for _, text := range texts {
			if !strings.Contains(files[name], text) {
				t.Errorf("%s lacks %q:\n%s", name, text, files[name])
			}
		}
	}
	if files["Dockerfile"] != "" || files["hack/old.sh"] != "" {
		t.Error("a file that should be missing exists")
	}
	plan, err := Update(UpdateOptions{Dir: p.dir})
	if err != nil || len(plan.Changes) > 0 {
		t.Errorf("a second update has %d changes: %v", len(plan.Changes), err)
	}
}

func TestAnUpdateReplacesNothingThatAPersonHasEdited(t *testing.T) {
	p := newProject(t)
	p.to(past(t))
	p.edit("Makefile", "go vet ./... ./internal/...", "go vet -v ./...")
	p.edit("cmd/main.go", `"starting"`, `"hoisting sails"`)
	p.edit("hack/old.sh", "is old", "is ours")
	if err := os.MkdirAll(filepath.Join(p.dir, ".github", "workflows"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.write(".github/workflows/lint.yml", "ours: true\n")
	edited := p.files()

	plan, err := Update(UpdateOptions{Dir: p.dir})
	if err != nil {
		t.Fatal(err)
	}
	conflicts := map[string]string{}
	for _, c := range Conflicting(plan.Changes) {
		conflicts[c.Path] = c.Conflicts[0].Reason
	}
	want := map[string]string{
		"Makefile":                   "you and koboshi both changed 1 line",
		"cmd/main.go":                "you and koboshi both changed 1 line",
		"hack/old.sh":                "you changed this file; delete it by hand, or with --force",
		".github/workflows/lint.yml": "the file exists already; move it away, or replace it with --force",
	}
	if diff := cmp.Diff(want, conflicts); diff != "" {
		t.Fatal(diff)
	}

	plan, err = Update(UpdateOptions{Dir: p.dir, SkipConflicts: true})
	p.run(plan, err)
	if notes := strings.Join(plan.Notes, "\n"); strings.Count(notes, "left out a change") != len(want) || !strings.Contains(notes, "Makefile:") {
		t.Errorf("the notes are\n%s", notes)
	}
	files := p.files()
	for name := range want {
		if files[name] != edited[name] {
			t.Errorf("%s has changed:\n%s", name, files[name])
		}
	}
	if !strings.Contains(files["config/manager/manager.yaml"], "replicas: 1") {
		t.Error("a file without a conflict was not updated")
	}
	if plan, err := Update(UpdateOptions{Dir: p.dir}); err != nil || len(plan.Changes) > 0 {
		t.Errorf("a second update has %d changes: %v", len(plan.Changes), err)
	}
}

func TestForceReplacesWholeFilesInAnUpdate(t *testing.T) {
	p := newProject(t)
	p.to(past(t))
	p.edit("hack/old.sh", "is old", "is ours")
	p.run(Update(UpdateOptions{Dir: p.dir, Force: true}))
	if p.files()["hack/old.sh"] != "" {
		t.Error("the file was not deleted")
	}
}

func TestCommandsUseTheTemplatesOfTheProject(t *testing.T) {
	p := newProject(t)
	old := past(t)
	maps.DeleteFunc(old, func(name string, _ []byte) bool { return strings.HasPrefix(name, "external/") })
	p.to(old)
	empty := p.files()
	p.api("sea", "v1", "Ship")
	if controller := p.files()["internal/controller/ship_controller.go"]; !strings.Contains(controller, "Package controller is old") {
		t.Errorf("the controller is not that of the old templates:\n%s", controller)
	}
	external := APIOptions{Dir: p.dir, Kind: Kind{Group: "sea", Version: "v1", Kind: "Port"}, Resource: true, Controller: true, Shape: ShapeExternal}
	if _, err := CreateAPI(external); err == nil || !strings.Contains(err.Error(), "run koboshi edit --update first") {
		t.Errorf("a part for which there are no templates: %v", err)
	}
	p.run(Delete(DeleteOptions{Dir: p.dir, Kind: ship}))
	p.same(empty)
	p.run(Update(UpdateOptions{Dir: p.dir}))
	p.run(CreateAPI(external))
}

func TestAProjectWithoutTemplatesIsUpdatedOnlyAfterItHasAdoptedThem(t *testing.T) {
	p := newProject(t)
	if err := os.Remove(filepath.Join(p.dir, recordPath)); err != nil {
		t.Fatal(err)
	}
	p.edit("Makefile", "##@ Development", "##@ Shipbuilding")
	before := p.files()
	p.api("sea", "v1", "Ship")
	p.run(Delete(DeleteOptions{Dir: p.dir, Kind: ship}))
	p.same(before)
	if _, err := Update(UpdateOptions{Dir: p.dir}); err == nil || !strings.Contains(err.Error(), "--adopt") {
		t.Errorf("the error is %v", err)
	}
	p.run(UpdateOptions{Dir: p.dir, Adopt: true}.update(record{past(t), ""}))
	after := p.files()
	delete(after, recordPath)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("adopting changes other files:\n%s", diff)
	}
	if _, err := Update(UpdateOptions{Dir: p.dir, Adopt: true}); err == nil || !strings.Contains(err.Error(), "omit the flag") {
		t.Errorf("the error is %v", err)
	}
	p.run(Update(UpdateOptions{Dir: p.dir, SkipConflicts: true}))
}

func TestAnOlderVersionDoesNotUndoAnUpdate(t *testing.T) {
	p := newProject(t)
	p.run(UpdateOptions{Dir: p.dir}.update(record{past(t), "v0.10.0"}))
	before := p.files()
	_, err := UpdateOptions{Dir: p.dir}.update(record{embedded(), "v0.9.1"})
	if err == nil || !strings.Contains(err.Error(), "koboshi v0.10.0, and this is koboshi v0.9.1; install") {
		t.Errorf("the error is %v", err)
	}
	p.same(before)
	p.run(UpdateOptions{Dir: p.dir}.update(record{embedded(), "v0.10.1"}))
}

// archiveOf returns an archive that contains one file.
func archiveOf(t *testing.T, name, content string) []byte {
	t.Helper()
	var out bytes.Buffer
	compressor := gzip.NewWriter(&out)
	archive := tar.NewWriter(compressor)
	err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))})
	_, written := archive.Write([]byte(content))
	if err := errors.Join(err, written, archive.Close(), compressor.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestAnArchiveThatCannotBeReadIsRefused(t *testing.T) {
	p := newProject(t)
	good := p.files()[recordPath]
	flipped := []byte(good)
	flipped[len(flipped)/2] ^= 1
	for name, c := range map[string]struct{ archive, want string }{
		"empty":           {"", "damaged (EOF); restore it with git"},
		"no archive":      {"version https://git-lfs.github.com/spec/v1\n", "damaged (gzip: invalid header)"},
		"cut":             {good[:len(good)-100], "damaged (unexpected EOF)"},
		"a changed bit":   {string(flipped), "damaged"},
		"another format":  {string(archiveOf(t, "v2/init/Makefile", "all:\n")), "this version of koboshi cannot read the file; install"},
		"too large":       {string(archiveOf(t, "v1/init/Makefile", strings.Repeat("#\n", maxRecord))), "too large"},
		"a path above":    {string(archiveOf(t, "v1/init/../../x", "x")), `the path "init/../../x"`},
		"an absolute one": {string(archiveOf(t, "v1//etc/x", "x")), `the path "/etc/x"`},
		"a hook of git":   {string(archiveOf(t, "v1/init/.Git/hooks/pre-commit", "#!/bin/sh\n")), `the path "init/.Git/hooks/pre-commit"`},
	} {
		t.Run(name, func(t *testing.T) {
			p.write(recordPath, c.archive)
			before := p.files()
			for _, command := range []func() (*Plan, error){
				func() (*Plan, error) { return Update(UpdateOptions{Dir: p.dir}) },
				func() (*Plan, error) { return CreateAPI(APIOptions{Dir: p.dir, Kind: ship, Resource: true}) },
			} {
				_, err := command()
				if err == nil || !strings.HasPrefix(err.Error(), recordPath+": ") || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("the error is %v, want %q", err, c.want)
				}
			}
			p.same(before)
		})
	}
}

func TestTheArchiveOfTheSameTemplatesIsTheSame(t *testing.T) {
	want := record{embedded(), "v0.1.0"}
	first, err := want.pack()
	second, err2 := want.pack()
	if err != nil || err2 != nil || !bytes.Equal(first, second) {
		t.Fatalf("the archives differ: %v, %v", err, err2)
	}
	got, err := unpack(first)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, *got, cmp.AllowUnexported(record{})); diff != "" {
		t.Error(diff)
	}
	if len(first) > 96<<10 {
		t.Errorf("the archive has %d bytes", len(first))
	}
}

func FuzzUnpack(f *testing.F) {
	good, err := record{Templates{"init/Makefile": []byte("all:\n")}, "v0.1.0"}.pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("PK"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := unpack(data)
		if err != nil {
			return
		}
		for name := range r.templates {
			if !filepath.IsLocal(name) {
				t.Errorf("the path %q leaves the project", name)
			}
		}
	})
}
