package guide

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// onePage limits how long the scripts of a page may run, because a loop that
	// waits in vain would never end.
	onePage = 2 * time.Minute
	// ending limits how long the processes that a page started may take to end.
	ending = time.Minute
)

func TestEveryShellBlockOfAPageRuns(t *testing.T) {
	t.Parallel()
	koboshi := built(t)
	pages, scripts := readPages(t), 0
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		script := scriptOf(pages[name])
		if script == "" || strings.HasPrefix(name, tutorial+"/") {
			continue
		}
		scripts++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out, err := runScript(t, koboshi, script, onePage); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if scripts < 5 {
		t.Errorf("only %d pages have shell blocks", scripts)
	}
}

func TestAPIServerTakesEveryManifest(t *testing.T) {
	t.Parallel()
	koboshi := built(t)
	// Manifests with these versions are configuration files of programs, not API objects.
	configuration := map[string]bool{"audit.k8s.io/v1": true, "check.koboshi.dev/v1": true}

	definitions, err := filepath.Glob("../../operators/*/config/crd/bases/*.yaml")
	if err != nil || len(definitions) == 0 {
		t.Fatalf("found no CRDs of the operators: %v", err)
	}
	var script strings.Builder
	script.WriteString(`
koboshi up --profile api --ephemeral --die-with-parent --kubeconfig kubeconfig --ready-file ready &
until [ -e ready ]; do sleep 0.1; done
export KUBECONFIG=$PWD/kubeconfig
`)
	for _, file := range definitions {
		absolute, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(&script, "koboshi kubectl apply --server-side -f '%s'\n", absolute)
	}
	// A kind is discovered only a moment after its CRD is Established.
	script.WriteString(`
koboshi kubectl wait --for=condition=Established crd --all
crds=$(koboshi kubectl get crd -o jsonpath='{.items[*].metadata.name}')
for crd in $crds; do
  until koboshi kubectl get "$crd"; do sleep 0.1; done
done
failed=0
`)
	asked := 0
	pages := readPages(t)
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		for _, b := range pages[name].blocks {
			if b.language != "yaml" || b.file != "" || !isManifest(t, b, configuration) {
				continue
			}
			asked++
			_, _ = fmt.Fprintf(&script, "koboshi kubectl apply --dry-run=server -f - <<'END-OF-BLOCK' || { echo 'refused: %s:%d'; failed=1; }\n%sEND-OF-BLOCK\n",
				name, b.line, b.text)
		}
	}
	script.WriteString("exit $failed\n")
	if asked < 10 {
		t.Errorf("only %d blocks hold manifests", asked)
	}
	if out, err := runScript(t, koboshi, script.String(), onePage); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func isManifest(t *testing.T, b block, configuration map[string]bool) bool {
	t.Helper()
	all, err := documents(b.text)
	if err != nil {
		t.Fatal(err)
	}
	return !slices.ContainsFunc(all, func(m manifest) bool {
		return m.APIVersion == "" || m.Kind == "" || configuration[m.APIVersion]
	})
}

// built returns the path of the program, which the variable KOBOSHI overrides.
func built(t *testing.T) string {
	t.Helper()
	path := os.Getenv("KOBOSHI")
	if path == "" {
		path = filepath.Join("..", "..", "bin", "koboshi")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the commands of the book need the program: %v; run make build", err)
	}
	return path
}

func scriptOf(p page) string {
	var script strings.Builder
	for _, b := range p.blocks {
		if b.language == "sh" {
			_, _ = fmt.Fprintf(&script, ": %s:%d\n%s", p.path, b.line, b.text)
		}
	}
	return script.String()
}

// runScript runs a script in an empty folder and ends every process that it started.
// It returns the output of the script and its commands.
func runScript(t *testing.T, koboshi, script string, limit time.Duration) (out string, err error) {
	t.Helper()
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	// The output goes to a file, because planes in the background would hold a pipe open.
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()

	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-eux", "-c", script)
	cmd.Dir, cmd.Stdout, cmd.Stderr = work, log, log
	cmd.Env = environment(filepath.Dir(koboshi), dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		err = fmt.Errorf("not done after %v: %w", limit, ctx.Err())
	}
	endGroup(t, cmd.Process.Pid)
	text, readErr := os.ReadFile(log.Name())
	return string(tail(text, 10_000)), errors.Join(err, readErr)
}

// environment returns the environment of a user who has the program on the PATH and
// no cluster.
func environment(bin, home string) []string {
	var env []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if slices.Contains([]string{"PATH", "HOME", "ENV", "XDG_CACHE_HOME"}, name) ||
			strings.HasPrefix(name, "KUBE") || strings.HasPrefix(name, "KOBOSHI") {
			continue
		}
		env = append(env, variable)
	}
	return append(env, "HOME="+home, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// endGroup ends all processes of a group and waits until they are gone.
func endGroup(t *testing.T, group int) {
	t.Helper()
	_ = syscall.Kill(-group, syscall.SIGTERM)
	deadline := time.After(ending)
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		select {
		case <-look.C:
		case <-deadline:
			t.Error("a process of the script did not end on SIGTERM")
			_ = syscall.Kill(-group, syscall.SIGKILL)
			return
		}
	}
}

// tail returns the end of a text, starting at the beginning of a line.
func tail(text []byte, most int) []byte {
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	return text[bytes.IndexByte(text, '\n')+1:]
}
