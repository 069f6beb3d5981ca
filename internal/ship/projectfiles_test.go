package ship

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTheImageForChecksHasNoFileThatGitIgnores(t *testing.T) {
	dir := t.TempDir()
	for path, content := range map[string]string{
		".gitignore": "bin/\nconfig/secret.yaml\n", "PROJECT": "", "README.md": "", "koboshi.yaml": "", "cmd/main.go": "", "cmd/main_test.go": "",
		"config/crd/a.yaml": "", "config/secret.yaml": "", "config/.env": "", "check/life.yaml": "", "vendor/x/x.go": "", "testdata/y.go": "",
		"bin/server": "", ".koboshi/findings/a.json": "", "charts/Chart.yaml": "",
	} {
		at := filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Skipf("this test needs git: %v\n%s", err, out)
	}
	want := []string{"PROJECT", "check/life.yaml", "cmd/main.go", "config/crd/a.yaml", "koboshi.yaml"}
	for _, c := range []struct{ named, want []string }{
		{nil, want},
		{[]string{"bin/server", "charts"}, append([]string{"bin/server", "charts/Chart.yaml"}, want...)},
	} {
		got, err := projectFiles(t.Context(), dir, c.named)
		slices.Sort(c.want)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q (%v)", c.named, got, c.want, err)
		}
	}
	for named, want := range map[string]string{"../outside": "is not in the project", "bin/client": "build it first"} {
		if _, err := projectFiles(t.Context(), dir, []string{named}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", named, err, want)
		}
	}
}
