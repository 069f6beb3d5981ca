package programs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "koboshi.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFileListsPrograms(t *testing.T) {
	workshop(t)
	file := write(t, `
run:
- image: web:1
  path: bin/web
  args: [--port, 8080]
  workingDir: bin
  env: {LEVEL: debug, PORT: 8080}
  user: 0
- {image: sh, path: /bin/sh}
`)
	dir := filepath.Dir(file)
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "web"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	got, err := Load(file)
	want := Set{
		{
			Image: "web:1", Path: dir + "/bin/web", Args: []string{"--port", "8080"}, WorkingDir: dir + "/bin",
			Env: map[string]string{"LEVEL": "debug", "PORT": "8080"}, User: new(int64(0)),
		},
		{Image: "sh", Path: "/bin/sh"},
	}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
}

func TestFileWithoutProgramsIsFine(t *testing.T) {
	if got, err := Load(write(t, "run: []\n")); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestWrongFileIsRefusedWithItsLine(t *testing.T) {
	for _, test := range []struct{ name, content, says string }{
		{"empty", "", "the file is empty"},
		{"only a comment", "# nothing\n", "the file is empty"},
		{"a text", "hello\n", "line 1: this is not a mapping"},
		{"an unknown section", "run: []\nports: 1\n", `line 2: unknown field "ports"; use one of run`},
		{"an empty mapping", "{}\n", "line 1: there is no list"},
		{"no list", "run:\n", "line 1: there is no list"},
		{"a list of texts", "run:\n- web=bin/web\n", "line 2: this is not a mapping"},
		{"an unknown field", "run:\n- image: sh\n  file: /bin/sh\n", `line 3: unknown field "file"; use one of image, path, args`},
		{"a field twice", "run:\n- image: sh\n  image: sh\n", `line 3: field "image" appears twice`},
		{"a section twice", "run: []\nrun: []\n", `line 2: field "run" appears twice`},
		{"a wrong type", "run:\n- image: sh\n  path: /bin/sh\n  user: me\n", "line 4: cannot unmarshal !!str `me`; it must be a number"},
		{"text for args", "run:\n- image: sh\n  path: /bin/sh\n  args: -c\n", "line 4: cannot unmarshal !!str `-c`; it must be a list of strings"},
		{"no YAML", "run:\n- {image: sh\n", "line 1: did not find expected"},
		{"no path", "run:\n- image: sh\n", "line 2: image sh has no path"},
		{"no program", "run:\n\n- image: sh\n  path: missing\n", "line 3: image sh: "},
		{"no folder", "run:\n- {image: sh, path: /bin/sh, workingDir: /bin/sh}\n", "line 2: image sh: workingDir /bin/sh is not a folder"},
		{"an impossible variable", "run:\n- {image: sh, path: /bin/sh, env: {A=B: c}}\n", `line 2: image sh: "A=B"`},
		{"an impossible user", "run:\n- {image: sh, path: /bin/sh, user: 4294967295}\n", "line 2: image sh: user 4294967295 is not a uid"},
		{"an image twice", "run:\n- {image: sh, path: /bin/sh}\n- {image: docker.io/library/sh, path: /bin/ls}\n", "line 3: image docker.io/library/sh has two programs, /bin/sh and /bin/ls"},
		{"a second document", "run: []\n---\nrun: []\n", "the file contains more than one YAML document"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Load(write(t, test.content))
			if err == nil || !strings.Contains(err.Error(), ": "+test.says) && !strings.Contains(err.Error(), "; "+test.says) {
				t.Errorf("Load = %v, %v; want an error with %q", got, err, test.says)
			}
		})
	}
}

func TestMissingFileIsRefused(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "koboshi.yaml")); err == nil || !strings.Contains(err.Error(), "correct the path") {
		t.Errorf("got %v", err)
	}
}

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{"", "run:\n- {image: sh, path: /bin/sh}\n", "run: &a\n- *a\n", "run: [{<<: {image: a}}]", "{a: b", "run: *x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		set, err := Load(write(t, content))
		if err != nil && len(set) > 0 {
			t.Errorf("programs %v with error %v", set, err)
		}
	})
}
