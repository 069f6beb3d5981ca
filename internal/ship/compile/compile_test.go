package compile_test

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/koboshi-dev/koboshi/internal/ship/compile"
)

// module writes a module with one program to a new folder.
func module(t *testing.T, code string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"go.mod": "module example.com/sea\n\ngo 1.26\n", "main.go": code} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const program = "package main\n\nfunc main() { println(\"sea\") }\n"

var platforms = []v1.Platform{{OS: "linux", Architecture: "amd64"}, {OS: "linux", Architecture: "arm64"}}

func build(t *testing.T, dir string) map[string][]compile.Binary {
	t.Helper()
	all, err := compile.Run(t.Context(), compile.Options{
		Programs: []compile.Program{{Name: "manager", Dir: dir, Package: "."}}, Platforms: platforms, Cache: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAProgramIsTheSameInEveryFolderAndEnvironment(t *testing.T) {
	a := build(t, module(t, program))
	for name, value := range map[string]string{"GOAMD64": "v3", "GOARM64": "v9.0", "CGO_ENABLED": "1", "GOEXPERIMENT": "arenas"} {
		t.Setenv(name, value)
	}
	b := build(t, module(t, program))
	for _, platform := range platforms {
		key := platform.String()
		one, err := os.ReadFile(a[key][0].Path)
		if err != nil {
			t.Fatal(err)
		}
		two, err := os.ReadFile(b[key][0].Path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one, two) {
			t.Errorf("%s: the programs differ", key)
		}
		info, err := buildinfo.Read(bytes.NewReader(one))
		if err != nil {
			t.Fatal(err)
		}
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if settings["GOARCH"] != platform.Architecture || settings["CGO_ENABLED"] != "0" {
			t.Errorf("%s: %v", key, settings)
		}
	}
}

func TestAnErrorOfTheCompilerIsShownWithItsPlatform(t *testing.T) {
	_, err := compile.Run(t.Context(), compile.Options{
		Programs:  []compile.Program{{Name: "manager", Dir: module(t, "package main\n\nfunc main() { sink() }\n"), Package: "."}},
		Platforms: platforms[1:], Cache: t.TempDir(),
	})
	if err == nil || !strings.Contains(err.Error(), "building manager for linux/arm64") || !strings.Contains(err.Error(), "main.go:3") {
		t.Errorf("%v", err)
	}
}

func TestAPlatformWithoutImagesIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"linux": "cannot build for", "linux/sparc": "cannot build for", "windows/amd64": "only for linux",
		"linux/amd64/v9": `no variant "v9"`, "a/b/c/d": "too many slashes",
	} {
		if _, err := compile.ParsePlatforms(t.Context(), []string{text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	got, err := compile.ParsePlatforms(t.Context(), []string{"linux/amd64", "linux/arm/v7", "linux/amd64"})
	if err != nil || len(got) != 2 || got[1].Variant != "v7" {
		t.Errorf("%v, %v", got, err)
	}
}
