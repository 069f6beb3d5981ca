package publish_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/koboshi-dev/koboshi/internal/ship/image"
	"github.com/koboshi-dev/koboshi/internal/ship/publish"
	"github.com/koboshi-dev/koboshi/internal/ship/sign"
)

var (
	amd64 = v1.Platform{OS: "linux", Architecture: "amd64"}
	arm64 = v1.Platform{OS: "linux", Architecture: "arm64"}
)

// release returns an index of two images, the first of which has an artifact.
func release(t *testing.T, program string) publish.Release {
	t.Helper()
	var images []v1.Image
	for _, platform := range []v1.Platform{amd64, arm64} {
		img, err := image.Make(t.TempDir(), image.Content{
			Platform: platform, Entrypoint: "/manager",
			Files: []image.File{{Path: "/manager", Content: []byte(program + platform.String()), Mode: 0o755}},
		}, time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		images = append(images, img)
	}
	subject, err := partial.Descriptor(images[0])
	if err != nil {
		t.Fatal(err)
	}
	artifact, err := image.Artifact(*subject, "application/spdx+json", []byte(`{"spdxVersion": "SPDX-2.3"}`))
	if err != nil {
		t.Fatal(err)
	}
	return publish.Release{Index: image.Index([]v1.Platform{amd64, arm64}, images, nil), Artifacts: []v1.Image{artifact}}
}

func tag(t *testing.T, text string) name.Tag {
	t.Helper()
	reference, err := name.NewTag(text)
	if err != nil {
		t.Fatal(err)
	}
	return reference
}

func digestOf(t *testing.T, of interface{ Digest() (v1.Hash, error) }) v1.Hash {
	t.Helper()
	digest, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestWhatIsPushedCanBePulledWithItsArtifacts(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := tag(t, strings.TrimPrefix(server.URL, "http://")+"/team/operator:v1")
	r := release(t, "program")
	var done, all int64
	if err := publish.Push(t.Context(), r, reference, func(d, a int64) { done, all = d, a }); err != nil {
		t.Fatal(err)
	}
	if done == 0 || done != all {
		t.Errorf("the progress ended at %d of %d bytes", done, all)
	}
	index, err := remote.Index(reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	if got, want := digestOf(t, index), digestOf(t, r.Index); got != want {
		t.Errorf("pulled %s, want %s", got, want)
	}
	img, err := publish.Pull(t.Context(), reference, amd64)
	if err != nil {
		t.Fatal(err)
	}
	referrers, err := remote.Referrers(reference.Context().Digest(digestOf(t, img).String()))
	if err != nil {
		t.Fatal(err)
	}
	list, err := referrers.IndexManifest()
	if err != nil || len(list.Manifests) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	artifact, err := remote.Image(reference.Context().Digest(list.Manifests[0].Digest.String()))
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err := artifact.Manifest(); err != nil || manifest.ArtifactType != "application/spdx+json" {
		t.Errorf("%+v, %v", manifest, err)
	}
}

func TestARegistryThatCannotBeReachedIsNamedWithTheNextAction(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	server := httptest.NewServer(nil)
	host := strings.TrimPrefix(server.URL, "http://")
	server.Close()
	err := publish.Push(t.Context(), release(t, "program"), tag(t, host+"/operator:v1"), nil)
	if err == nil || !strings.Contains(err.Error(), "pushing "+host+"/operator:v1") || !strings.Contains(err.Error(), "docker login "+host) {
		t.Errorf("%v", err)
	}
}

func TestALayoutReplacesOnlyALayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dist", "image")
	reference := tag(t, "example.com/operator:v1")
	for _, program := range []string{"old", "new"} {
		r := release(t, program)
		if err := publish.Layout(dir, r, reference); err != nil {
			t.Fatal(err)
		}
		index, err := layout.ImageIndexFromPath(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Error(err)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		first := manifest.Manifests[0]
		if first.Digest != digestOf(t, r.Index) || first.Annotations["org.opencontainers.image.ref.name"] != "v1" || len(manifest.Manifests) != 2 {
			t.Errorf("%s: %+v", program, manifest.Manifests)
		}
	}
	for _, names := range [][]string{{"mine.txt"}, {"index.json"}, {"index.json", "oci-layout", "logo.png"}} {
		other := t.TempDir()
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(other, name), []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := publish.Layout(other, release(t, "program"), reference); err == nil || !strings.Contains(err.Error(), "--output-dir") {
			t.Errorf("%q: %v", names, err)
		}
		if left, err := os.ReadDir(other); err != nil || len(left) != len(names) {
			t.Errorf("%q: files of the user are gone: %v, %v", names, left, err)
		}
	}
}

func TestAnArchiveHasTheImageForOnePlatform(t *testing.T) {
	file := filepath.Join(t.TempDir(), "image.tar")
	reference := tag(t, "example.com/operator:v1")
	if err := publish.Archive(file, release(t, "program").Index, arm64, reference); err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(file, &reference)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	if config, err := img.ConfigFile(); err != nil || config.Architecture != "arm64" {
		t.Errorf("%+v, %v", config, err)
	}
	if err := publish.Archive(file, release(t, "program").Index, v1.Platform{OS: "linux", Architecture: "s390x"}, reference); err == nil {
		t.Error("there is an archive for a platform without an image")
	}
}

func TestAnImageIsLoadedWithTheProgramOfTheCluster(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	said := filepath.Join(bin, "said")
	script := "#!/bin/sh\nprintf '%s' \"$*\" > " + said + "\ntest \"$5\" != broken || { echo no nodes; exit 3; }\n"
	if err := os.WriteFile(filepath.Join(bin, "kind"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"kind": "load image-archive /tmp/image.tar --name kind", "kind=sea": "load image-archive /tmp/image.tar --name sea",
	} {
		target, err := publish.ParseTarget(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := target.Load(t.Context(), "/tmp/image.tar"); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(said); err != nil || string(got) != want {
			t.Errorf("%s: kind got %q, %v", text, got, err)
		}
	}
	target, err := publish.ParseTarget("kind=broken")
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Load(t.Context(), "/tmp/image.tar"); err == nil || !strings.Contains(err.Error(), "no nodes") {
		t.Errorf("%v", err)
	}
}

func TestAWrongClusterIsRefused(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for text, want := range map[string]string{
		"podman": `cannot load an image into "podman"`, "k3s=a": "use --load k3s", "kind=": "use --load kind=NAME", "minikube": "needs the program minikube",
	} {
		if _, err := publish.ParseTarget(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// signedRelease returns a release whose index is signed with a new key.
func signedRelease(t *testing.T, reference name.Reference) publish.Release {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := sign.ReadKey(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := release(t, "program")
	signatures, err := key.Image(reference.Context(), digestOf(t, r.Index))
	if err != nil {
		t.Fatal(err)
	}
	r.Signatures = []sign.Signatures{signatures}
	return r
}

func TestAPushKeepsTheSignaturesOfOtherKeys(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := tag(t, strings.TrimPrefix(server.URL, "http://")+"/team/operator:v1")
	mine, yours := signedRelease(t, reference), signedRelease(t, reference)
	for i, r := range []publish.Release{mine, yours, mine} {
		if err := publish.Push(t.Context(), r, reference, nil); err != nil {
			t.Fatal(err)
		}
		img, err := remote.Image(reference.Context().Tag("sha256-" + digestOf(t, r.Index).Hex + ".sig"))
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := img.Manifest()
		if err != nil || len(manifest.Layers) != min(i+1, 2) {
			t.Errorf("after push %d: %+v, %v", i+1, manifest, err)
		}
	}
}

func TestTheSignatureOfASingleImageIsPushed(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	reference := tag(t, strings.TrimPrefix(server.URL, "http://")+"/team/operator-bundle:v1")
	if err := publish.PushData(t.Context(), empty.Image, signedRelease(t, reference).Signatures, reference); err != nil {
		t.Fatal(err)
	}
	tags, err := remote.List(reference.Context())
	if err != nil || len(tags) != 2 || !strings.HasSuffix(tags[0], ".sig") || tags[1] != "v1" {
		t.Errorf("%v, %v", tags, err)
	}
}

func TestALayoutHasTheSignaturesWhereCosignLooksForThem(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "image")
	reference := tag(t, "example.com/operator:v1")
	r := signedRelease(t, reference)
	if err := publish.Layout(dir, r, reference); err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, d := range manifest.Manifests {
		kinds[d.Annotations["kind"]] = d.Annotations["org.opencontainers.image.ref.name"]
	}
	if kinds["dev.cosignproject.cosign/imageIndex"] != "v1" || kinds["dev.cosignproject.cosign/sigs"] != "sha256-"+digestOf(t, r.Index).Hex+".sig" {
		t.Errorf("%v", kinds)
	}
}
