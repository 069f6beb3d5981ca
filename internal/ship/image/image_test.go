package image_test

import (
	"archive/tar"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/koboshi-dev/koboshi/internal/ship/image"
)

var (
	epoch = time.Unix(0, 0).UTC()
	amd64 = v1.Platform{OS: "linux", Architecture: "amd64"}
)

// content returns an image with a program that is a file of the folder dir.
func content(t *testing.T, dir, program string) image.Content {
	t.Helper()
	file := filepath.Join(dir, "manager")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	return image.Content{
		Platform: amd64, Entrypoint: "/manager", Labels: map[string]string{"org.opencontainers.image.title": "sea"},
		Files: []image.File{{Path: "/manager", Source: file, Mode: 0o755}},
	}
}

func makeImage(t *testing.T, cache string, c image.Content) v1.Image {
	t.Helper()
	img, err := image.Make(cache, c, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func digestOf(t *testing.T, of interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	digest, err := of.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// entries returns the headers of all files in an image, and their contents.
func entries(t *testing.T, img v1.Image) (map[string]*tar.Header, map[string]string) {
	t.Helper()
	headers, contents := map[string]*tar.Header{}, map[string]string{}
	stream := mutate.Extract(img)
	defer func() { _ = stream.Close() }()
	for reader := tar.NewReader(stream); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		headers[header.Name], contents[header.Name] = header, string(data)
	}
}

func TestTheDigestDependsOnlyOnTheContent(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	a := makeImage(t, t.TempDir(), content(t, first, "program"))
	later := content(t, second, "program")
	if err := os.Chtimes(later.Files[0].Source, epoch, time.Now()); err != nil {
		t.Fatal(err)
	}
	b := makeImage(t, t.TempDir(), later)
	if digestOf(t, a) != digestOf(t, b) {
		t.Error("the same files in another folder, at another time, have another digest")
	}
	if c := makeImage(t, t.TempDir(), content(t, t.TempDir(), "another program")); digestOf(t, a) == digestOf(t, c) {
		t.Error("another program has the same digest")
	}
}

func TestAnImageRunsItsProgramAsAUserWithoutRights(t *testing.T) {
	img := makeImage(t, t.TempDir(), content(t, t.TempDir(), "program"))
	if err := validate.Image(img); err != nil {
		t.Error(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Config; got.User != "65532:65532" || !slices.Equal(got.Entrypoint, []string{"/manager"}) || got.Labels["org.opencontainers.image.title"] != "sea" {
		t.Errorf("%+v", got)
	}
	headers, contents := entries(t, img)
	if contents["manager"] != "program" || headers["manager"].Mode != 0o755 {
		t.Errorf("the program is %+v", headers["manager"])
	}
	if headers["tmp"] == nil && headers["tmp/"] == nil {
		t.Errorf("there is no folder for temporary files among %v", slices.Collect(maps.Keys(headers)))
	}
	for name, header := range headers {
		if header.Uid != 0 || header.Gid != 0 || !header.ModTime.Equal(epoch) {
			t.Errorf("%s: user %d, group %d, time %s", name, header.Uid, header.Gid, header.ModTime)
		}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(contents["etc/ssl/certs/ca-certificates.crt"])) {
		t.Error("there is no certificate authority")
	}
}

func TestALayerIsCompressedOnlyOnce(t *testing.T) {
	cache, c := t.TempDir(), content(t, t.TempDir(), "program")
	want := digestOf(t, makeImage(t, cache, c))
	archives, err := filepath.Glob(filepath.Join(cache, "*.tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatalf("%v, %v", archives, err)
	}
	before, err := os.Stat(archives[0])
	if err != nil {
		t.Fatal(err)
	}
	makeImage(t, cache, c)
	after, err := os.Stat(archives[0])
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the layer was written again: %v", err)
	}
	if err := os.Truncate(archives[0], 10); err != nil {
		t.Fatal(err)
	}
	img := makeImage(t, cache, c)
	if digestOf(t, img) != want {
		t.Error("the digest has changed")
	}
	if err := validate.Image(img); err != nil {
		t.Errorf("the damaged layer was used: %v", err)
	}
}

func TestALayerThatWasNotUsedForAWeekIsRemoved(t *testing.T) {
	cache, dir := t.TempDir(), t.TempDir()
	makeImage(t, cache, content(t, dir, "program"))
	archives, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(archives) != 2 {
		t.Fatalf("%v, %v", archives, err)
	}
	old := time.Now().Add(-8 * 24 * time.Hour)
	for _, file := range archives {
		if err := os.Chtimes(file, old, old); err != nil {
			t.Fatal(err)
		}
	}
	makeImage(t, cache, content(t, dir, "another program"))
	for _, file := range archives {
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is still there", filepath.Base(file))
		}
	}
}

func TestFilesAreAddedToABase(t *testing.T) {
	base := makeImage(t, t.TempDir(), image.Content{
		Platform: amd64, Entrypoint: "/sh", Files: []image.File{{Path: "/etc/motd", Content: []byte("hello"), Mode: 0o644}},
	})
	c := content(t, t.TempDir(), "program")
	c.Base = base
	img := makeImage(t, t.TempDir(), c)
	if _, contents := entries(t, img); contents["etc/motd"] != "hello" || contents["manager"] != "program" {
		t.Errorf("%v", contents)
	}
	if config, err := img.ConfigFile(); err != nil || !slices.Equal(config.Config.Entrypoint, []string{"/manager"}) {
		t.Errorf("%+v, %v", config, err)
	}
}

func TestAnIndexNamesThePlatformOfEachImage(t *testing.T) {
	arm := v1.Platform{OS: "linux", Architecture: "arm64"}
	c := content(t, t.TempDir(), "program")
	one := makeImage(t, t.TempDir(), c)
	c.Platform = arm
	two := makeImage(t, t.TempDir(), c)
	index := image.Index([]v1.Platform{amd64, arm}, []v1.Image{one, two}, map[string]string{"a": "b"})
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range manifest.Manifests {
		got = append(got, d.Platform.String()+" "+d.Digest.String())
		if d.ArtifactType != "" {
			t.Errorf("%s is an artifact of type %s", d.Platform, d.ArtifactType)
		}
	}
	if want := []string{"linux/amd64 " + digestOf(t, one), "linux/arm64 " + digestOf(t, two)}; !slices.Equal(got, want) || manifest.Annotations["a"] != "b" {
		t.Errorf("%v, want %v; annotations %v", got, want, manifest.Annotations)
	}
}

func TestAnArtifactRefersToItsSubject(t *testing.T) {
	img := makeImage(t, t.TempDir(), content(t, t.TempDir(), "program"))
	subject, err := partial.Descriptor(img)
	if err != nil {
		t.Fatal(err)
	}
	artifact, err := image.Artifact(*subject, "application/spdx+json", []byte(`{"a": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := artifact.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Subject == nil || manifest.Subject.Digest != subject.Digest || manifest.ArtifactType != "application/spdx+json" || len(manifest.Layers) != 1 {
		t.Errorf("%+v", manifest)
	}
	layers, err := artifact.Layers()
	if err != nil {
		t.Fatal(err)
	}
	stream, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(stream); err != nil || string(data) != `{"a": 1}` {
		t.Errorf("%q, %v", data, err)
	}
}
