package ship_test

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/koboshi-dev/koboshi/internal/project"
	"github.com/koboshi-dev/koboshi/internal/ship"
	"github.com/koboshi-dev/koboshi/internal/ship/certificates"
	"github.com/koboshi-dev/koboshi/internal/ship/publish"
	"github.com/koboshi-dev/koboshi/internal/ship/sign"
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

// write writes the project to a new folder, with changed or further files; an empty text removes a file.
func write(t *testing.T, changes map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	all := maps.Clone(files)
	maps.Copy(all, changes)
	for name, text := range all {
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

// olmOptions asks for a bundle with a version.
func olmOptions(t *testing.T, image string) func(*ship.Options) {
	t.Helper()
	reference, err := name.NewTag(image)
	if err != nil {
		t.Fatal(err)
	}
	return func(o *ship.Options) { o.Reference, o.OLM, o.Channels = reference, true, []string{"stable"} }
}

func TestABundleNamesTheImageThatWasBuilt(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	bundled := olmOptions(t, host+"/team/sea:v1.2.0")
	r := mustRun(t, write(t, nil), func(o *ship.Options) { bundled(o); o.Push = true })
	if want := host + "/team/sea-bundle:v1.2.0@sha256:"; r.Bundle == nil || !strings.HasPrefix(r.Bundle.Image, want) {
		t.Fatalf("%+v", r.Bundle)
	}
	csv := text(t, filepath.Join(r.Bundle.Folder, "manifests", "sea.clusterserviceversion.yaml"))
	if n := strings.Count(csv, "image: "+r.Image); n != 3 { // two containers, and relatedImages
		t.Errorf("the image %s is in %d places:\n%s", r.Image, n, csv)
	}
	reference, err := name.NewTag(host + "/team/sea-bundle:v1.2.0")
	if err != nil {
		t.Fatal(err)
	}
	img, err := remote.Image(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	digest, err := img.Digest()
	if err != nil || !strings.HasSuffix(r.Bundle.Image, digest.String()) {
		t.Errorf("pushed %s, %v, but the result is %s", digest, err, r.Bundle.Image)
	}
	index, err := layout.ImageIndexFromPath(r.Bundle.Layout)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := index.IndexManifest(); err != nil || len(list.Manifests) != 1 || list.Manifests[0].Digest != digest {
		t.Errorf("%+v, %v", list, err)
	}
	checkBundleImage(t, img, r.Bundle.Folder)
}

// checkBundleImage checks that an image has the files of a bundle, and the labels by which tools find them.
func checkBundleImage(t *testing.T, img v1.Image, folder string) {
	t.Helper()
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Config.Labels["operators.operatorframework.io.bundle.mediatype.v1"]; got != "registry+v1" || len(config.Config.Entrypoint) != 0 {
		t.Errorf("%+v", config.Config)
	}
	if layers, err := img.Layers(); err != nil || len(layers) != 1 {
		t.Errorf("%d layers, %v", len(layers), err)
	}
	stream := mutate.Extract(img)
	defer func() { _ = stream.Close() }()
	found := 0
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		found++
		content, err := io.ReadAll(reader)
		if err != nil || string(content) != text(t, filepath.Join(folder, header.Name)) {
			t.Errorf("%s: %v, or it differs", header.Name, err)
		}
	}
	if found != 3 { // the ClusterServiceVersion, the CRD and the annotations
		t.Errorf("the image has %d files", found)
	}
}

func TestABundleIsRefusedIfTheManagerMakesItsOwnCertificate(t *testing.T) {
	bundled := olmOptions(t, "example.com/sea:v1.2.0")
	_, err := run(t, write(t, nil), func(o *ship.Options) { bundled(o); o.Certificates = certificates.SelfSigned })
	if err == nil || !strings.Contains(err.Error(), "omit --olm or --certificates self-signed") {
		t.Errorf("%v", err)
	}
}

func TestTheSameProjectHasTheSameBundle(t *testing.T) {
	bundled := olmOptions(t, "example.com/sea:v1.2.0")
	one, two := mustRun(t, write(t, nil), bundled), mustRun(t, write(t, nil), bundled)
	if one.Bundle.Image != two.Bundle.Image {
		t.Errorf("%s and %s", one.Bundle.Image, two.Bundle.Image)
	}
	later := mustRun(t, write(t, nil), func(o *ship.Options) { bundled(o); o.Time = time.Unix(100, 0) })
	if csv := text(t, filepath.Join(later.Bundle.Folder, "manifests", "sea.clusterserviceversion.yaml")); !strings.Contains(csv, `createdAt: "1970-01-01T00:01:40Z"`) {
		t.Errorf("%s", csv)
	}
}

func TestABundleHasNoManifestsOfAnEarlierOne(t *testing.T) {
	bundled := olmOptions(t, "example.com/sea:v1.2.0")
	dir := write(t, nil)
	var dist string
	r := mustRun(t, dir, func(o *ship.Options) { bundled(o); dist = o.Dir })
	old := filepath.Join(r.Bundle.Folder, "manifests", "gone_v1_service.yaml")
	if err := os.WriteFile(old, []byte("kind: Service\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := func(o *ship.Options) { bundled(o); o.Dir = dist }
	mustRun(t, dir, again)
	if _, err := os.Stat(old); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", old, err)
	}
	// Files that are not part of a bundle are not removed.
	if err := os.Rename(filepath.Join(r.Bundle.Folder, "manifests", "sea.clusterserviceversion.yaml"), old); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, dir, again); err == nil || !strings.Contains(err.Error(), "may not be a bundle") {
		t.Errorf("%v", err)
	}
}

func TestAProjectWithoutABundleIsRefusedBeforeTheBuild(t *testing.T) {
	for name, c := range map[string]struct {
		image   string
		changes map[string]string
		want    string
	}{
		"a tag that is no version": {"example.com/sea:latest", nil, `the tag "latest" of the image is none`},
		"a kind without OLM": {"example.com/sea:v1.2.0", map[string]string{
			"config/crd.yaml": files["config/crd.yaml"] + "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\n",
		}, "DaemonSet sea-d: OLM creates no objects of this kind"},
		"no Deployment": {"example.com/sea:v1.2.0", map[string]string{
			"config/manager/kustomization.yaml": "resources: []\n", "config/default/kustomization.yaml": "resources: [../crd.yaml]\n",
		}, "omit --olm"},
		"a wrong base": {"example.com/sea:v1.2.0", map[string]string{
			"config/manifests/bases/sea.clusterserviceversion.yaml": "kind: Pod\n",
		}, "is no ClusterServiceVersion"},
	} {
		h := &heard{}
		bundled := olmOptions(t, c.image)
		_, err := run(t, write(t, c.changes), func(o *ship.Options) { bundled(o); o.Observer = h })
		if err == nil || !strings.Contains(err.Error(), c.want) || len(h.built) > 0 {
			t.Errorf("%s: %v, built %q", name, err, h.built)
		}
	}
}

func TestEverythingThatIsPublishedIsSigned(t *testing.T) {
	key, err := sign.ReadKey("sign/testdata/cosign.key", func() ([]byte, error) { return []byte("for tests only"), nil })
	if err != nil {
		t.Fatal(err)
	}
	r := mustRun(t, write(t, nil), func(o *ship.Options) { o.Key = key })
	var want []string
	for _, digest := range []string{r.Digest, r.Platforms[0].Digest, r.Platforms[1].Digest} {
		tag := strings.Replace(digest, ":", "-", 1)
		want = append(want, tag+".att", tag+".sig")
	}
	index, err := layout.ImageIndexFromPath(r.Layout)
	if err != nil {
		t.Fatal(err)
	}
	list, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range list.Manifests {
		if tag := d.Annotations["org.opencontainers.image.ref.name"]; strings.HasPrefix(tag, "sha256-") {
			got = append(got, tag)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) || len(r.Signatures) != len(want) {
		t.Errorf("the layout has the signatures %v, want %v", got, want)
	}
	if other := mustRun(t, write(t, nil), nil); other.Digest != r.Digest || len(other.Signatures) > 0 {
		t.Errorf("without a key: %+v", other)
	}
}

// webhooks is a part of config/crd.yaml with a webhook that the manager serves.
const webhooks = `---
apiVersion: v1
kind: Service
metadata: {name: webhook-service, namespace: system}
spec: {selector: {a: b}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: validating}
webhooks:
- name: boats.sea.example.com
  clientConfig: {service: {name: webhook-service, namespace: system}}
`

func TestTheSourceOfCertificatesChangesTheManifestAndNotTheImage(t *testing.T) {
	crd := files["config/crd.yaml"] + webhooks
	able := `package main

import "flag"

func main() {
	for _, name := range []string{"webhook-self-signed-secret", "webhook-service", "webhook-configurations"} {
		flag.String(name, "", "")
	}
	flag.Parse()
}
`
	dir := write(t, map[string]string{"config/crd.yaml": crd, "cmd/main.go": able})
	plain := mustRun(t, dir, nil)
	for source, want := range map[certificates.Source]string{
		certificates.CertManager: "cert-manager.io/inject-ca-from: sea-system/sea-serving-cert",
		certificates.SelfSigned:  "- --webhook-configurations=validating/sea-validating",
	} {
		r := mustRun(t, dir, func(o *ship.Options) { o.Certificates = source })
		if manifest := text(t, r.Install); !strings.Contains(manifest, want) || strings.Contains(text(t, plain.Install), want) {
			t.Errorf("%s: %q is missing in\n%s", source, want, manifest)
		}
		if r.Digest != plain.Digest {
			t.Errorf("%s: another image", source)
		}
	}
	unable := write(t, map[string]string{"config/crd.yaml": crd})
	if _, err := run(t, unable, func(o *ship.Options) { o.Certificates = certificates.SelfSigned }); err == nil || !strings.Contains(err.Error(), "--webhook-self-signed-secret") {
		t.Errorf("%v", err)
	}
}
