package unpack

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/koboshi-dev/koboshi/internal/programs"
)

var manager = &tar.Header{Name: "manager", Typeflag: tar.TypeReg, Mode: 0o755, Size: 3}

// imageOf returns an image with one layer of entries, each with the content "abc" if it is a file.
func imageOf(t *testing.T, config v1.Config, entries ...*tar.Header) v1.Image {
	t.Helper()
	var content bytes.Buffer
	w := tar.NewWriter(&content)
	for _, entry := range entries {
		if err := w.WriteHeader(entry); err != nil {
			t.Fatal(err)
		}
		if entry.Typeflag == tar.TypeReg {
			_, _ = io.WriteString(w, "abc")
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err == nil {
		img, err = mutate.Config(img, config)
	}
	if err != nil {
		t.Fatal(err)
	}
	return img
}

// written returns a program whose path is a layout with an index of the image for one architecture.
func written(t *testing.T, img v1.Image, architecture string) programs.Program {
	t.Helper()
	dir := t.TempDir()
	index := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}},
	})
	target, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err == nil {
		err = target.AppendIndex(index)
	}
	if err != nil {
		t.Fatal(err)
	}
	return programs.Program{Image: "example.org/operator", Path: dir}
}

func TestAnImageBecomesAProgramWithItsOwnFiles(t *testing.T) {
	config := v1.Config{Entrypoint: []string{"/manager"}, Cmd: []string{"--leader-elect"}, Env: []string{"A=image", "B=image"}, User: "65532:65532", WorkingDir: "/tmp"}
	img := imageOf(t, config, manager,
		&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		&tar.Header{Name: "bin/run", Typeflag: tar.TypeSymlink, Linkname: "../manager"},
		&tar.Header{Name: "bin/same", Typeflag: tar.TypeLink, Linkname: "manager"})
	p := written(t, img, runtime.GOARCH)
	p.Env = map[string]string{"B": "user"}
	dir := t.TempDir()
	set, err := All(programs.Set{{Image: "other", Path: "/bin/sh"}, p}, dir)
	if err != nil {
		t.Fatal(err)
	}
	want := programs.Set{{Image: "other", Path: "/bin/sh"}, {
		Image: p.Image, Path: "/manager", Root: filepath.Join(dir, "1"), Args: []string{"--leader-elect"},
		Env: map[string]string{"A": "image", "B": "user"}, User: new(int64(65532)), WorkingDir: "/tmp",
	}}
	if diff := cmp.Diff(want, set); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"manager", "bin/run", "bin/same"} {
		content, err := os.ReadFile(filepath.Join(set[1].Root, name))
		if err != nil || string(content) != "abc" {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
	if info, err := os.Stat(filepath.Join(set[1].Root, "tmp")); err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o777 {
		t.Errorf("/tmp: %v, %v", info, err)
	}
}

func TestAnImageThatCannotRunIsRefused(t *testing.T) {
	good := v1.Config{Entrypoint: []string{"/manager"}}
	for name, tc := range map[string]struct {
		img          v1.Image
		architecture string
		says         string
	}{
		"another architecture":  {imageOf(t, good, manager), "s390x", "it is for linux/s390x, and this machine needs linux/"},
		"no entrypoint":         {imageOf(t, v1.Config{}, manager), runtime.GOARCH, "is not the absolute path of one program"},
		"a shell as entrypoint": {imageOf(t, v1.Config{Entrypoint: []string{"/bin/sh", "-c", "manager"}}, manager), runtime.GOARCH, "is not the absolute path of one program"},
		"a missing program":     {imageOf(t, good), runtime.GOARCH, "/manager is not a file of the image"},
		"the name of a user":    {imageOf(t, v1.Config{Entrypoint: good.Entrypoint, User: "nonroot"}, manager), runtime.GOARCH, `its user is "nonroot"`},
	} {
		_, err := All(programs.Set{written(t, tc.img, tc.architecture)}, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "image example.org/operator in ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestALayoutWithSeveralImagesNeedsTheTag(t *testing.T) {
	dir := t.TempDir()
	target, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"v1", "v2"} {
		img := imageOf(t, v1.Config{Entrypoint: []string{"/manager"}, Cmd: []string{tag}}, manager)
		if err := target.AppendImage(img, layout.WithAnnotations(map[string]string{refName: tag})); err != nil {
			t.Fatal(err)
		}
	}
	set, err := All(programs.Set{{Image: "operator:v2", Path: dir}}, t.TempDir())
	if err != nil || set[0].Args[0] != "v2" {
		t.Errorf("%v, %v", set, err)
	}
	if _, err := All(programs.Set{{Image: "operator:v3", Path: dir}}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "has 2 images, and none with this tag") {
		t.Error(err)
	}
}

func TestNothingIsWrittenOutsideOfTheFolder(t *testing.T) {
	outside := t.TempDir()
	for name, entries := range map[string][]*tar.Header{
		"through a link":          {{Name: "out", Typeflag: tar.TypeSymlink, Linkname: outside}, {Name: "out/x", Typeflag: tar.TypeReg, Size: 3}},
		"by its path":             {{Name: "../x", Typeflag: tar.TypeReg, Size: 3}},
		"a link to a file":        {{Name: "x", Typeflag: tar.TypeLink, Linkname: "../../../../../../etc/passwd"}},
		"through a relative link": {{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "../.."}, {Name: "out/x", Typeflag: tar.TypeReg, Size: 3}},
	} {
		dir := t.TempDir()
		img := imageOf(t, v1.Config{Entrypoint: []string{"/manager"}}, append([]*tar.Header{manager}, entries...)...)
		_, _ = All(programs.Set{written(t, img, runtime.GOARCH)}, dir) // it may be refused
		if files, err := os.ReadDir(outside); err != nil || len(files) > 0 {
			t.Errorf("%s: %v, %v", name, files, err)
		}
		if files, err := os.ReadDir(dir); err != nil || len(files) > 1 {
			t.Errorf("%s: beside its folder, there are %v, %v", name, files, err)
		}
		if content, err := os.ReadFile(filepath.Join(dir, "0", "x")); err == nil && string(content) != "abc" {
			t.Errorf("%s: it shows %s", name, content)
		}
	}
}
