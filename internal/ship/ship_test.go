package ship_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/koboshi-dev/koboshi/internal/project"
	"github.com/koboshi-dev/koboshi/internal/ship"
	"github.com/koboshi-dev/koboshi/internal/ship/publish"
)

// files is a project with a manager and a second program.
var files = map[string]string{
	"PROJECT":            "domain: example.com\nlayout:\n- go.kubebuilder.io/v4\nprojectName: sea\nrepo: github.com/example/sea\nversion: \"3\"\n",
	"go.mod":             "module github.com/example/sea\n\ngo 1.26\n",
	"cmd/main.go":        "package main\n\nfunc main() { println(\"the manager runs\") }\n",
	"cmd/viewer/main.go": "package main\n\nfunc main() { println(\"the viewer runs\") }\n",
	"config/default/kustomization.yaml": `namespace: sea-system
namePrefix: sea-
resources: [../crd.yaml, ../manager]
`,
	"config/manager/kustomization.yaml": `resources: [manager.yaml]
images:
- {name: controller, newName: sea, newTag: 0.1.0}
`,
	"config/manager/manager.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: controller-manager, namespace: system, labels: {control-plane: controller-manager}}
spec:
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec:
      containers:
      - name: manager
        image: controller:latest
        command: [/manager]
        args: [--leader-elect, --viewer-image=sea:0.1.0]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: viewer, namespace: system}
spec:
  selector: {matchLabels: {a: c}}
  template:
    metadata: {labels: {a: c}}
    spec:
      containers:
      - {name: viewer, image: controller:latest, command: [/viewer]}
---
apiVersion: v1
kind: Namespace
metadata: {name: system}
`,
	"config/crd.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.sea.example.com}
spec:
  group: sea.example.com
  names: {kind: Boat, plural: boats}
  scope: Namespaced
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`,
}

// write writes the project to a new folder, with changes; an empty text removes a file.
func write(t *testing.T, changes map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if changed, ok := changes[name]; ok {
			text = changed
		}
		if text == "" {
			continue
		}
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// heard records what Run tells its observer.
type heard struct {
	mu    sync.Mutex
	built []string
	notes []string
}

func (h *heard) Built(program string, platform v1.Platform, _ time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.built = append(h.built, program+" "+platform.String())
}
func (h *heard) Pushed(int64, int64) {}
func (h *heard) Note(text string)    { h.notes = append(h.notes, text) }

var both = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

// run ships the project in a folder, into a new folder.
func run(t *testing.T, dir string, change func(*ship.Options)) (*ship.Result, error) {
	t.Helper()
	p, err := project.Load(t.Context(), project.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	o := ship.Options{Project: p, Platforms: both, Dir: filepath.Join(t.TempDir(), "dist"), Cache: t.TempDir(), Tool: "koboshi-v1", Observer: &heard{}}
	if change != nil {
		change(&o)
	}
	return ship.Run(t.Context(), o)
}

func mustRun(t *testing.T, dir string, change func(*ship.Options)) *ship.Result {
	t.Helper()
	result, err := run(t, dir, change)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func text(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTheSameProjectInAnotherFolderHasTheSameDigest(t *testing.T) {
	one, two := mustRun(t, write(t, nil), nil), mustRun(t, write(t, nil), nil)
	if one.Digest != two.Digest {
		t.Errorf("%s and %s", one.Digest, two.Digest)
	}
	for i := range one.Platforms {
		if text(t, one.Platforms[i].SBOM) != text(t, two.Platforms[i].SBOM) {
			t.Errorf("%s: the SBOMs differ", one.Platforms[i].Platform)
		}
	}
	for name, pair := range map[string][2]string{"manifests": {one.Install, two.Install}, "statements": {one.Provenance, two.Provenance}} {
		if text(t, pair[0]) != text(t, pair[1]) {
			t.Errorf("the %s differ", name)
		}
	}
	changed := mustRun(t, write(t, map[string]string{"cmd/main.go": "package main\n\nfunc main() { println(\"it runs\") }\n"}), nil)
	if changed.Digest == one.Digest {
		t.Error("a changed program has the same digest")
	}
}

func TestTheManifestNamesTheImageThatWasBuilt(t *testing.T) {
	reference, err := name.NewTag("registry.example.com/team/sea:v1")
	if err != nil {
		t.Fatal(err)
	}
	dir := write(t, nil)
	r := mustRun(t, dir, func(o *ship.Options) { o.Reference = reference })
	want := "registry.example.com/team/sea:v1@" + r.Digest
	manifest := text(t, r.Install)
	if n := strings.Count(manifest, "image: "+want); n != 2 || r.Image != want {
		t.Errorf("the image %s is in %d containers:\n%s", r.Image, n, manifest)
	}
	if !strings.Contains(manifest, "--viewer-image="+want) || strings.Contains(manifest, "sea:0.1.0") {
		t.Errorf("an argument has another image:\n%s", manifest)
	}
	if strings.Index(manifest, "kind: Namespace") > strings.Index(manifest, "kind: Deployment") {
		t.Error("the namespace comes after the Deployments")
	}
	index, err := layout.ImageIndexFromPath(r.Layout)
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil || list.Manifests[0].Digest.String() != r.Digest {
		t.Errorf("%+v, %v", list, err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	if got := text(t, filepath.Join(dir, "config/manager/manager.yaml")); got != files["config/manager/manager.yaml"] {
		t.Error("a file of the project was changed")
	}
}

func TestTheProgramsOfTheImageRun(t *testing.T) {
	r := mustRun(t, write(t, nil), nil)
	index, err := layout.ImageIndexFromPath(r.Layout)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := v1.NewHash(r.Digest)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := index.ImageIndex(digest)
	if err != nil {
		t.Fatal(err)
	}
	list, err := inner.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for _, d := range list.Manifests {
		if d.Platform.Architecture != runtime.GOARCH {
			continue
		}
		img, err := inner.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		unpack(t, img, root)
	}
	for _, program := range []string{"manager", "viewer"} {
		said, err := exec.Command(filepath.Join(root, program)).CombinedOutput()
		if want := "the " + program + " runs\n"; err != nil || string(said) != want {
			t.Errorf("%s: %q, %v", program, said, err)
		}
	}
}

// unpack writes the programs of an image, which are in its root folder, to a folder.
func unpack(t *testing.T, img v1.Image, root string) {
	t.Helper()
	stream := mutate.Extract(img)
	defer func() { _ = stream.Close() }()
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg || strings.Contains(header.Name, "/") {
			continue
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, header.Name), data, 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func TestALoadedImageHasATagOfItsContent(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	if err := os.WriteFile(filepath.Join(bin, "kind"), []byte("#!/bin/sh\ntest -s \"$3\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	target, err := publish.ParseTarget("kind")
	if err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "image.tar")
	r := mustRun(t, write(t, nil), func(o *ship.Options) { o.Load, o.Archive = []publish.Target{target}, archive })
	want := "sea:sha-" + strings.TrimPrefix(r.Digest, "sha256:")[:12]
	if r.Image != want || !strings.Contains(text(t, r.Install), "image: "+want+"\n") {
		t.Errorf("the image is %s, want %s", r.Image, want)
	}
	tag, err := name.NewTag(want)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tarball.ImageFromPath(archive, &tag); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(archive); err != nil || r.Archive != archive {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAProgramWithoutAMainPackageIsNamed(t *testing.T) {
	dir := write(t, map[string]string{"cmd/viewer/main.go": ""})
	if _, err := run(t, dir, nil); err == nil || !strings.Contains(err.Error(), "start /viewer") || !strings.Contains(err.Error(), "ship.programs") {
		t.Errorf("%v", err)
	}
	other := write(t, map[string]string{"cmd/viewer/main.go": ""})
	at := filepath.Join(other, "tools", "see")
	if err := os.MkdirAll(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "main.go"), []byte(files["cmd/viewer/main.go"]), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &heard{}
	mustRun(t, other, func(o *ship.Options) {
		o.Programs, o.Observer, o.Platforms = map[string]string{"viewer": "tools/see"}, h, both[:1]
	})
	if got := strings.Join(h.built, ", "); !strings.Contains(got, "viewer linux/amd64") {
		t.Errorf("built %s", got)
	}
}

func TestAProjectWithoutADeploymentGetsAnImageAlone(t *testing.T) {
	h := &heard{}
	dir := write(t, map[string]string{"config/manager/kustomization.yaml": "resources: []\n", "config/default/kustomization.yaml": "resources: [../crd.yaml]\n"})
	r := mustRun(t, dir, func(o *ship.Options) { o.Observer = h })
	if r.Install != "" || len(h.notes) != 2 || !strings.Contains(h.notes[0], "only in "+r.Layout) || !strings.HasPrefix(r.Image, "sea@sha256:") {
		t.Errorf("%+v, %q", r, h.notes)
	}
}

func TestAnErrorOfTheCompilerLeavesTheFilesOfTheLastCall(t *testing.T) {
	dir := write(t, nil)
	var dist string
	r := mustRun(t, dir, func(o *ship.Options) { dist = o.Dir })
	before := text(t, r.Install)
	if err := os.WriteFile(filepath.Join(dir, "cmd", "main.go"), []byte("package main\n\nfunc main() { sink() }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, dir, func(o *ship.Options) { o.Dir = dist }); err == nil || !strings.Contains(err.Error(), "undefined: sink") {
		t.Errorf("%v", err)
	}
	if text(t, r.Install) != before {
		t.Error("install.yaml has changed")
	}
	var document struct{ SPDXID string }
	if err := json.Unmarshal([]byte(text(t, r.Platforms[0].SBOM)), &document); err != nil || document.SPDXID != "SPDXRef-DOCUMENT" {
		t.Errorf("%+v, %v", document, err)
	}
}

func TestAnImageNamedByADigestInTheManifestsIsReplaced(t *testing.T) {
	old := "sha256:" + strings.Repeat("0", 64)
	dir := write(t, map[string]string{"config/manager/kustomization.yaml": "resources: [manager.yaml]\nimages:\n- {name: controller, newName: sea, digest: \"" + old + "\"}\n"})
	r := mustRun(t, dir, nil)
	if r.Image != "sea@"+r.Digest || strings.Contains(text(t, r.Install), old) {
		t.Errorf("the image is %s:\n%s", r.Image, text(t, r.Install))
	}
}

func TestAManagerThatAShellStartsIsRefused(t *testing.T) {
	manager := strings.Replace(files["config/manager/manager.yaml"], "command: [/manager]", "command: [/bin/sh, -c, exec /manager]", 1)
	if _, err := run(t, write(t, map[string]string{"config/manager/manager.yaml": manager}), nil); err == nil || !strings.Contains(err.Error(), "no shell") {
		t.Errorf("%v", err)
	}
}
