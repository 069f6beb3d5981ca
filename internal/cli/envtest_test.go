package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/envtest/assets"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
)

func TestEnvtestPathPrintsNothingButTheFolder(t *testing.T) {
	cache := cacheFolder(t)
	code, out, stderr := run(t, "envtest", "path")
	folder, ok := strings.CutSuffix(out, "\n")
	if code != exitOK || stderr != "" || !ok || !strings.HasPrefix(folder, cache+"/") {
		t.Errorf("exit code %d, %q, want one folder below %s\n%s", code, out, cache, stderr)
	}
	for _, name := range assets.Names() {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s is not executable: %v (%v)", name, info, err)
		}
	}
}

func TestInstallGoesToWhereItIsLookedFor(t *testing.T) {
	platform := fmt.Sprintf("%s-%s-%s", kubeversion.Version, runtime.GOOS, runtime.GOARCH)
	if !regexp.MustCompile(`^\d+\.\d+\.\d+-\w+-\w+$`).MatchString(platform) {
		t.Errorf("setup-envtest does not understand %q", platform)
	}
	for name, test := range map[string]struct {
		files string // in the project, besides inner/
		args  []string
		want  string // where k8s/ is
	}{
		"a kubebuilder project":        {"PROJECT", nil, "bin"},
		"a Go module":                  {"go.mod", nil, "bin"},
		"the nearest of both":          {"PROJECT inner/go.mod", nil, "inner/bin"},
		"a folder of that name is not": {"PROJECT inner/go.mod/file", nil, "bin"},
		"a folder":                     {"PROJECT", []string{"--bin-dir", "elsewhere"}, "inner/elsewhere"},
		"the store":                    {"PROJECT", []string{"--store"}, "data/kubebuilder-envtest"},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "darwin" && name == "the store" {
				t.Skip("there the store is in the home folder")
			}
			project := suiteProject(t, strings.Fields(test.files)...)
			t.Setenv("XDG_DATA_HOME", filepath.Join(project, "data"))
			t.Chdir(filepath.Join(project, "inner"))
			code, out, stderr := run(t, append([]string{"envtest", "install", "-o", "json"}, test.args...)...)
			if code != exitOK || stderr != "" {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			var got assets.Installation
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			dir := filepath.Join(project, test.want, "k8s", platform)
			want := assets.Installation{Dir: dir, Files: assets.Names(), Replaced: []string{}, Linked: true}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, name := range assets.Names() {
				if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != 0o755 {
					t.Errorf("%s: %v (%v)", name, info, err)
				}
			}
		})
	}
}

func TestTheStoreIsInTheHomeFolderByDefault(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_DATA_HOME", "")
	want := map[string]string{
		"linux":  filepath.Join(home, ".local/share/kubebuilder-envtest"),
		"darwin": filepath.Join(home, "Library/Application Support/io.kubebuilder.envtest"),
	}[runtime.GOOS]
	if got, err := storeFolder(); err != nil || got != want {
		t.Errorf("%s (%v), want %s", got, err, want)
	}
}

func TestInstallSaysWhatToDoNext(t *testing.T) {
	t.Chdir(suiteProject(t, "PROJECT"))
	code, out, stderr := run(t, "envtest", "install")
	if want := "for make test ENVTEST_K8S_VERSION=" + kubeversion.Version; code != exitOK || stderr != "" || !strings.Contains(out, want) {
		t.Errorf("exit code %d, %q does not say %q\n%s", code, out, want, stderr)
	}
}

// The suites that kubebuilder generates use the first folder below bin/k8s.
func TestInstallWarnsOfAnotherVersionThatComesFirst(t *testing.T) {
	project := suiteProject(t, "PROJECT", "bin/k8s/1.10.0-linux-amd64/etcd", "bin/k8s/9.0.0-linux-amd64/etcd", "bin/k8s/0-file")
	t.Chdir(project)
	code, _, stderr := run(t, "envtest", "install")
	want := "koboshi: a suite run without make uses " + filepath.Join(project, "bin/k8s/1.10.0-linux-amd64")
	if code != exitOK || !strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, %q, want one line that begins %q", code, stderr, want)
	}
}

func TestInstallRefusesInOneLine(t *testing.T) {
	home := suiteProject(t, "PROJECT", "file", "stock/k8s/"+platformFolder()+"/etcd", "stock/k8s/"+platformFolder()+"/kubectl")
	for _, test := range []struct {
		dir, args, says string
		code            int
	}{
		{"", "--store --bin-dir=x", "--store and --bin-dir name different folders; leave one of them out", exitUsage},
		{"", "-o yaml", `unknown output format "yaml"; use -o json, or leave -o out`, exitUsage},
		{"", "there", `koboshi envtest install takes no arguments, but got "there"; see koboshi envtest install --help`, exitUsage},
		{"/", "", "found no PROJECT or go.mod in / or its parent folders; change to your project, or use --bin-dir or --store", exitUsage},
		{"", "--bin-dir=stock", "holds etcd, kubectl of another program; use --force to replace them, or choose another --bin-dir", exitUsage},
		{"", "--bin-dir=file", "not a directory; choose another folder with --bin-dir", exitError},
		{"", "--store", "--store needs your home folder, but HOME is not set; set it, or choose a folder with --bin-dir", exitUsage},
	} {
		t.Setenv("HOME", "")
		t.Setenv("XDG_DATA_HOME", "")
		t.Chdir(filepath.Join(home, "inner"))
		t.Chdir(home)
		if test.dir != "" {
			t.Chdir(test.dir)
		}
		code, out, stderr := run(t, append([]string{"envtest", "install"}, strings.Fields(test.args)...)...)
		if code != test.code || out != "" || strings.Count(stderr, "\n") != 1 || !strings.HasSuffix(stderr, test.says+"\n") {
			t.Errorf("install %s in %s: exit code %d, want %d, and one line that ends %q:\n%s%s", test.args, test.dir, code, test.code, test.says, out, stderr)
		}
	}
	if code, _, stderr := run(t, "envtest", "pth"); code != exitUsage || stderr != "koboshi: unknown command \"pth\"; see koboshi envtest --help\n" {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestInstallReplacesOtherProgramsWhenForced(t *testing.T) {
	t.Chdir(suiteProject(t, "PROJECT", "bin/k8s/"+platformFolder()+"/etcd"))
	code, out, stderr := run(t, "envtest", "install", "--force", "-o", "json")
	if code != exitOK || stderr != "" || !strings.Contains(out, `"replaced":["etcd"]`) {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
}

// project makes a folder with these files and a folder named inner.
func suiteProject(t *testing.T, files ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, "inner/file") {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// goCache is read before a test changes HOME.
var goCache = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	return strings.TrimSpace(string(out)), err
})

// cacheFolder gives the test its own home folder, but keeps Go's build cache,
// because compiling the standard library again takes long.
func cacheFolder(t *testing.T) string {
	t.Helper()
	built, err := goCache()
	if err != nil {
		t.Fatal(err)
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", built)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("XDG_CONFIG_HOME", "")
	config, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	// Otherwise Go's telemetry would write there while the test cleans up.
	telemetry := filepath.Join(config, "go", "telemetry")
	if err := os.MkdirAll(telemetry, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(telemetry, "mode"), []byte("off"), 0o600); err != nil {
		t.Fatal(err)
	}
	return home
}
