package programs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// workshop makes a folder that holds a program, a text file and a folder, and changes to
// it.
func workshop(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"web": 0o755, "text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	return dir
}

func TestFlagNamesAnImageAndAProgram(t *testing.T) {
	dir := workshop(t)
	for _, test := range []struct{ flag, image, path string }{
		{"web=./web", "web", dir + "/web"},
		{"web=web", "web", dir + "/web"},
		{"web:1.2=folder/../web", "web:1.2", dir + "/web"},
		{"localhost:5000/team/web=" + dir + "/web", "localhost:5000/team/web", dir + "/web"},
		{"web@" + digest + "=web", "web@" + digest, dir + "/web"},
	} {
		got, err := Parse(test.flag)
		if want := (Program{Image: test.image, Path: test.path}); err != nil || !cmp.Equal(got, want) {
			t.Errorf("Parse(%q) = %+v, %v; want %+v", test.flag, got, err, want)
		}
	}
}

func TestWrongFlagIsRefusedWithTheNextAction(t *testing.T) {
	dir := workshop(t)
	for _, test := range []struct{ flag, says string }{
		{"", "an example is"},
		{"web", "an example is"},
		{"=web", "the image is empty"},
		{"web=", "name the program"},
		{"Web=web", "must be lowercase"},
		{"web:=web", "is not an image"},
		{"web@sha256:12=web", "is not an image"},
		{"web=missing", dir + "/missing does not exist; build the program first"},
		{"web=folder", "name the program itself"},
		{"web=/dev/null", "name the program itself"},
		{"web=text", "chmod +x"},
		{"web=web/below", "not a directory; correct the path"},
	} {
		if got, err := Parse(test.flag); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("Parse(%q) = %+v, %v; want an error with %q", test.flag, got, err, test.says)
		}
	}
}

func TestImageFindsItsProgram(t *testing.T) {
	set := Set{
		{Image: "web", Path: "any"},
		{Image: "web:1.2", Path: "tagged"},
		{Image: "web@" + digest, Path: "digested"},
		{Image: "docker.io/library/db:latest", Path: "db"},
		{Image: "example.com/team/job", Path: "job"},
		{Image: "web:1.2", Path: "too late"},
	}
	for image, want := range map[string]string{
		"web":                         "any",
		"web:latest":                  "any",
		"library/web:9":               "any",
		"docker.io/library/web":       "any",
		"index.docker.io/library/web": "any",
		"web:1.2":                     "tagged",
		"docker.io/library/web:1.2":   "tagged",
		"web@" + digest:               "digested",
		"web:1.2@" + digest:           "digested",
		"web:1.2@sha512:" + strings.Repeat("0", 128): "tagged",
		"db":                    "db",
		"db:latest":             "db",
		"db:16":                 "",
		"db@" + digest:          "",
		"team/web":              "",
		"example.com/web":       "",
		"example.com/team/job":  "job",
		"example.com/team/job:": "",
		"":                      "",
		"WEB":                   "",
	} {
		got, found := set.Lookup(image)
		if got.Path != want || found != (want != "") {
			t.Errorf("Lookup(%q) = %q, %t; want %q", image, got.Path, found, want)
		}
	}
}

func TestAnyAsksForAllImages(t *testing.T) {
	set := Set{{Image: "web"}}
	if !set.Any("db", "web:2") || set.Any("db", "cache") || set.Any() || Set(nil).Any("web") {
		t.Error("Any does not answer whether one of the images is in the set")
	}
}

func TestUserIsNotRootUnlessSaid(t *testing.T) {
	if got := (Program{}).UID(); got != DefaultUser {
		t.Errorf("uid %d, want %d", got, DefaultUser)
	}
	if got := (Program{User: new(int64(0))}).UID(); got != 0 {
		t.Errorf("uid %d, want 0", got)
	}
}

func TestSecondProgramForAnImageIsRefused(t *testing.T) {
	set, err := Set(nil).Add(Program{Image: "web", Path: "/a"}, Program{Image: "web:1", Path: "/b"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = set.Add(Program{Image: "docker.io/library/web", Path: "/c"})
	if err == nil || !strings.Contains(err.Error(), "has two programs, /a and /c") {
		t.Errorf("got %v", err)
	}
}

func TestSetSurvivesJSON(t *testing.T) {
	set := Set{
		{Image: "web", Path: "/web", Args: []string{"-v"}, WorkingDir: "/tmp", Env: map[string]string{"A": "b"}, User: new(int64(0))},
		{Image: "db", Path: "/db"},
	}
	data, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	var back Set
	if err := json.Unmarshal(data, &back); err != nil || !cmp.Equal(set, back) {
		t.Errorf("%v\n%s", err, cmp.Diff(set, back))
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "web=./bin/web", "a:b@c=d", "=", "web=/bin/sh", "localhost:5000/x=/bin/sh", "web@" + digest + "=/bin/sh"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, flag string) {
		p, err := Parse(flag)
		if err != nil {
			return
		}
		if !filepath.IsAbs(p.Path) {
			t.Errorf("path %q is not absolute", p.Path)
		}
		if found, ok := (Set{p}).Lookup(p.Image); !ok && strings.Contains(p.Image, ":") || ok && found.Path != p.Path {
			t.Errorf("image %q does not find its own program", p.Image)
		}
	})
}

func FuzzLookup(f *testing.F) {
	for _, seed := range []string{"", "web", "web:1", "a/b/c:d@" + digest, "web@sha256:", ":", "@"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, program, pod string) {
		p, found := Set{{Image: program, Path: "/p"}}.Lookup(pod)
		if found != (p.Path != "") {
			t.Errorf("Lookup = %+v, %t", p, found)
		}
		own, err := parseImage(program)
		other, otherErr := parseImage(pod)
		if found && (err != nil || otherErr != nil || own.name != other.name) {
			t.Errorf("program %q was found for image %q", program, pod)
		}
		if !found && err == nil && program == pod {
			t.Errorf("program %q was not found for its own image", program)
		}
	})
}
