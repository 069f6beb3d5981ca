package actions

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// program is a koboshi that only prints its version.
const program = "#!/bin/sh\necho \"koboshi v1.2.0, called with $*\"\n"

// archiveName is the name of the archive for this machine, as .goreleaser.yaml sets it.
var archiveName = fmt.Sprintf("koboshi_1.2.0_%s_%s.tar.gz", runtime.GOOS, runtime.GOARCH)

// release serves the files of the release v1.2.0, and returns its address without the version.
func release(t *testing.T, files map[string][]byte) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		version, name := path.Split(strings.TrimPrefix(r.URL.Path, "/"))
		data, ok := files[name]
		if !ok || version != "v1.2.0/" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// packed returns a release archive that contains the program.
func packed(t *testing.T, content string) []byte {
	t.Helper()
	var data bytes.Buffer
	zipped := gzip.NewWriter(&data)
	archive := tar.NewWriter(zipped)
	for name, text := range map[string]string{"koboshi": content, "README.md": "# Koboshi\n"} {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return data.Bytes()
}

// checksums lists files as sha256sum does.
func checksums(files map[string][]byte) []byte {
	var b bytes.Buffer
	for name, data := range files {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(data), name)
	}
	return b.Bytes()
}

func TestAReleaseIsInstalledAfterItsChecksumIsVerified(t *testing.T) {
	archive := packed(t, program)
	address := release(t, map[string][]byte{archiveName: archive, "checksums.txt": checksums(map[string][]byte{archiveName: archive, "other_" + archiveName: nil})})
	r := newRunner(t)
	got := r.run("setup", map[string]string{"version": "v1.2.0", "releases": address})
	if got.code != 0 || got.outputs["version"] != "koboshi v1.2.0, called with version" {
		t.Fatalf("exit code %d, version %q; log:\n%s", got.code, got.outputs["version"], got.log)
	}
	if first := filepath.SplitList(r.path)[0]; filepath.Join(first, "koboshi") != got.outputs["path"] {
		t.Errorf("the PATH begins with %s, and the program is %s", first, got.outputs["path"])
	}
	if diff := cmp.Diff([]string{"actions/cache/restore", "actions/cache/save"}, called(got)); diff != "" {
		t.Fatalf("the calls (-want +got):\n%s", diff)
	}
	for _, c := range got.calls {
		if c.with["key"] != fmt.Sprintf("koboshi-%s-%s-v1.2.0", runtime.GOOS, runtime.GOARCH) || c.with["path"] != filepath.Dir(got.outputs["path"]) {
			t.Errorf("%s keeps %s as %s", c.uses, c.with["path"], c.with["key"])
		}
	}
}

// called returns the names of the actions that were called.
func called(r result) (names []string) {
	for _, c := range r.calls {
		name, _, _ := strings.Cut(c.uses, "@")
		names = append(names, name)
	}
	return names
}

func TestWithoutTheCacheNothingIsKept(t *testing.T) {
	r, _ := builder(t)
	got := r.run("setup", map[string]string{"version": "source", "cache": "false"})
	if diff := cmp.Diff([]string{"actions/setup-go"}, called(got)); got.code != 0 || diff != "" {
		t.Errorf("exit code %d, the calls (-want +got):\n%s", got.code, diff)
	}
}

func TestAReleaseThatIsNotWhatItShouldBeIsNotInstalled(t *testing.T) {
	archive := packed(t, program)
	good := checksums(map[string][]byte{archiveName: archive})
	tests := map[string]struct {
		version string
		files   map[string][]byte
		want    string
	}{
		"replaced":        {"v1.2.0", map[string][]byte{archiveName: packed(t, "#!/bin/sh\necho malicious\n"), "checksums.txt": good}, "is damaged, or was replaced"},
		"not listed":      {"v1.2.0", map[string][]byte{archiveName: archive, "checksums.txt": checksums(map[string][]byte{"x_" + archiveName: archive})}, "does not list " + archiveName},
		"not there":       {"v1.3.0", nil, "release v1.3.0 was not found"},
		"other platforms": {"v1.2.0", map[string][]byte{"checksums.txt": good}, "has no " + archiveName},
		"no version":      {"latest; echo injected", nil, `version "latest; echo injected" is neither`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t)
			before := r.path
			got := r.run("setup", map[string]string{"version": test.version, "releases": release(t, test.files)})
			if got.code == 0 || r.path != before || strings.Contains(got.log, "malicious") {
				t.Errorf("it was installed:\n%s", got.log)
			}
			mustContain(t, "the log", got.log, test.want)
		})
	}
}

// builder returns a runner whose go command records in a file how it is called, and makes program.
func builder(t *testing.T) (r *runner, calls string) {
	t.Helper()
	r = newRunner(t)
	bin := t.TempDir()
	calls = filepath.Join(bin, "calls")
	made := filepath.Join(bin, "made")
	r.write(made, program)
	script := `#!/bin/bash
echo "$PWD $CGO_ENABLED $GOFLAGS $*" >>"` + calls + `"
while [ "$1" != -o ]; do shift; done
install -m 755 "` + made + `" "$2"
`
	if err := os.WriteFile(filepath.Join(bin, "go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	r.path = bin + string(os.PathListSeparator) + r.path
	return r, calls
}

func TestWithoutAReleaseTheSourceOfTheActionIsBuilt(t *testing.T) {
	r, calls := builder(t)
	got := r.run("setup", map[string]string{"version": "source"})
	if got.code != 0 {
		t.Fatalf("exit code %d:\n%s", got.code, got.log)
	}
	top, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if want := top + " 0 -trimpath build -ldflags=-s -w -o " + got.outputs["path"] + " ./cmd/koboshi\n"; r.read(calls) != want {
		t.Errorf("go was called as %q, want %q", r.read(calls), want)
	}
	if diff := cmp.Diff([]string{"actions/cache/restore", "actions/setup-go", "actions/cache/save"}, called(got)); diff != "" {
		t.Fatalf("the calls (-want +got):\n%s", diff)
	}
	if file := got.calls[1].with["go-version-file"]; filepath.Clean(file) != filepath.Join(top, "go.mod") {
		t.Errorf("the version of Go is that of %s", file)
	}
	if !regexp.MustCompile(`-source-[0-9a-f]{32}$`).MatchString(got.calls[0].with["key"]) {
		t.Errorf("the key of the cache is %s", got.calls[0].with["key"])
	}
}

func TestAProgramFromTheCacheIsNotBuiltAgain(t *testing.T) {
	r, calls := builder(t)
	r.uses = func(c call) (map[string]string, error) {
		folder := c.with["path"]
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
		return map[string]string{"cache-hit": "true"}, os.WriteFile(filepath.Join(folder, "koboshi"), []byte(program), 0o755)
	}
	got := r.run("setup", map[string]string{"version": "source"})
	if got.code != 0 || len(got.calls) != 1 {
		t.Errorf("exit code %d, calls %+v:\n%s", got.code, got.calls, got.log)
	}
	if _, err := os.Stat(calls); err == nil {
		t.Errorf("go was called as %q", r.read(calls))
	}
}

// A release sets the version that a workflow gets by default, so a workflow that names a commit of this
// repository gets the release of that commit.
func TestTheDefaultVersionIsThatOfTheNewestRelease(t *testing.T) {
	data, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "source"
	if m := regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+[^\]]*)\]`).FindSubmatch(data); m != nil {
		want = "v" + string(m[1])
	}
	version, err := os.ReadFile("setup/version")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want+"\n", string(version)); diff != "" {
		t.Errorf("actions/setup/version and the newest release in CHANGELOG.md (-want +got):\n%s", diff)
	}
}
