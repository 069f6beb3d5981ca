package home_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/home"
)

// user pretends that this process runs in a user's environment, and returns the user's home
// directory.
func user(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	for _, name := range []string{"AWS_SECRET_ACCESS_KEY", "GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG", "XDG_CONFIG_HOME", "GITHUB_TOKEN"} {
		t.Setenv(name, filepath.Join(dir, "secret"))
	}
	for _, name := range []string{"GOPATH", "GOCACHE", "GOMODCACHE", "PYTHONUSERBASE", "PYENV_ROOT", "RBENV_ROOT", "ASDF_DATA_DIR", "VOLTA_HOME", "RUSTUP_HOME"} {
		t.Setenv(name, "")
	}
	return dir
}

func TestEnvironmentHoldsNothingOfTheUser(t *testing.T) {
	theirs, dir := user(t), filepath.Join(t.TempDir(), "home")
	for _, entry := range home.Environment(dir) {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case name == "PATH", name == "LANG", name == "TMPDIR":
			if value != os.Getenv(name) {
				t.Errorf("%s is %s", name, value)
			}
		case name == "HOME", strings.HasPrefix(name, "XDG_"):
			if value != dir && !strings.HasPrefix(value, dir+"/") {
				t.Errorf("%s is outside %s", entry, dir)
			}
		default:
			t.Errorf("the environment contains %s", entry)
		}
		if strings.Contains(value, theirs) {
			t.Errorf("%s is in the user's home directory", entry)
		}
	}
}

func TestLanguageToolsFindTheirFolders(t *testing.T) {
	theirs := user(t)
	t.Setenv("GOMODCACHE", "/modules")
	for _, folder := range []string{"go", ".local"} {
		if err := os.Mkdir(filepath.Join(theirs, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	env := strings.Join(home.Environment("/other"), "\n") + "\n"
	for _, want := range []string{"GOPATH=" + theirs + "/go\n", "GOMODCACHE=/modules\n", "PYTHONUSERBASE=" + theirs + "/.local\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("%q is missing in:\n%s", want, env)
		}
	}
	if strings.Contains(env, "PYENV_ROOT") {
		t.Errorf("PYENV_ROOT names a folder that does not exist:\n%s", env)
	}
}

func TestHomeIsEmptiedExceptForCaches(t *testing.T) {
	user(t)
	dir := filepath.Join(t.TempDir(), "home")
	write := func(script string) {
		t.Helper()
		cmd := exec.Command("sh", "-euc", script)
		cmd.Env = home.Environment(dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if err := home.Make(dir, []byte("first")); err != nil {
		t.Fatal(err)
	}
	write(`test "$(cat ~/.kube/config)" = first
		echo state >~/state; mkdir "$XDG_CONFIG_HOME/tool"; echo old >"$XDG_STATE_HOME/log"; echo kept >"$XDG_CACHE_HOME/cache"; echo x >"$XDG_RUNTIME_DIR/x"`)
	if err := home.Make(dir, []byte("second")); err != nil {
		t.Fatal(err)
	}
	write(`test "$(cat ~/.kube/config)" = second; test "$(cat ~/.cache/cache)" = kept
		test ! -e ~/state; test ! -e ~/.config/tool; test ! -e ~/.local/state/log; test ! -e ~/.run/x; test -d "$XDG_DATA_HOME"`)
	if err := home.Make(dir, nil); err != nil {
		t.Fatal(err)
	}
	write(`test -z "$(ls -A ~/.kube)"`)
}

func TestOthersCannotReadTheKubeconfig(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	if err := home.Make(dir, []byte("token")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{home.Kubeconfig(dir): 0o600, filepath.Join(dir, ".run"): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %o", path, info.Mode(), err, want)
		}
	}
}
