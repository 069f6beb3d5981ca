package conformance

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestControllersSeeNothingOfTheUser checks canaries in three languages. Each canary looks for a
// user's credentials, finds the cluster in a single way, and writes to that cluster.
func TestControllersSeeNothingOfTheUser(t *testing.T) {
	goCanary := buildCanary(t)
	for name, command := range map[string][]string{
		"go":     {goCanary},
		"python": {"python3", "canary.py"},
		"shell":  {"sh", "canary.sh"},
	} {
		for _, how := range []string{"home", "in-cluster"} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath(command[0]); err != nil {
					t.Skip(err)
				}
				if how == "in-cluster" && !namespaces() {
					t.Skip("this system allows no user namespaces")
				}
				canary(t, how, command)
			})
		}
	}
}

// namespaces reports whether koboshi check can replace files for individual processes.
func namespaces() bool {
	return runtime.GOOS == "linux" && exec.Command("unshare", "-Urm", "true").Run() == nil
}

func buildCanary(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "canary")
	build := exec.Command("go", "build", "-o", program, "./canary")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// canary checks the canary in a user's environment that is full of credentials.
func canary(t *testing.T, how string, command []string) {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "canary"))); err != nil {
		t.Fatal(err)
	}
	kubeconfig := decoy(t)
	writeFile(t, filepath.Join(home, ".kube", "config"), kubeconfig)
	writeFile(t, filepath.Join(home, ".aws", "credentials"), "canary-secret")
	writeFile(t, filepath.Join(home, ".config", "gcloud", "key.json"), "canary-secret")

	args := []string{"--plan", "--workers=1", "--seed=1", "--scenario=scenario.yaml", "--env=KOBOSHI=" + koboshi, "--"}
	theirs := home
	if !namespaces() {
		theirs = "none" // without namespaces, only HOME is hidden
	}
	c := checkIn(t, dir, append(append(args, command...), how, theirs)...)
	c.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, ".config"),
		"KUBECONFIG="+filepath.Join(home, ".kube", "config"), "AWS_SECRET_ACCESS_KEY=canary-secret", "GITHUB_TOKEN=canary-secret",
		"GOOGLE_APPLICATION_CREDENTIALS=/canary-secret")
	c.start(t)
	c.end(t, 0)

	if plan := c.stdout.String(); !strings.Contains(plan, "configmaps default/canary") {
		t.Errorf("the proxy did not see the canary's request:\n%s%s", plan, c.stderr)
	}
	seen, err := os.ReadFile(filepath.Join(dir, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(seen), "reached=yes ") {
		t.Errorf("the first canary did not reach the proxy: %s", seen)
	}
	for line := range strings.Lines(string(seen)) {
		if !arrived.MatchString(line) {
			t.Errorf("the canary reports: %s", line)
		}
	}
}

// arrived matches the line of a canary whose request was answered by the plane. A canary that is
// restarted in the same run finds the object that the previous canary created.
var arrived = regexp.MustCompile(`^reached=(yes|.*already exists|.*409.*) leaked=\n$`)

// decoy returns a kubeconfig for a server that no canary may call.
func decoy(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Error("the user's cluster was called")
			_ = conn.Close()
		}
	}()
	return `{"clusters": [{"name": "c", "cluster": {"server": "http://` + l.Addr().String() + `"}}],
"users": [{"name": "u", "user": {"token": "canary-secret"}}],
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "current-context": "c"}`
}

func TestCheckGoesOnWhereNamespacesAreForbidden(t *testing.T) {
	t.Parallel()
	if !namespaces() {
		t.Skip("this system allows no user namespaces, so the other tests cover this case")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "canary"))); err != nil {
		t.Fatal(err)
	}
	c := checkIn(t, dir, "--workers=1", "--seed=1", "--scenario=scenario.yaml", "--faults=restart", "--", buildCanary(t), "home", "none")
	c.cmd.Args = append([]string{"unshare", "-Ur", "sh", "-c", `echo 0 >/proc/sys/user/max_mnt_namespaces && exec "$0" "$@"`}, c.cmd.Args...)
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		t.Fatal(err)
	}
	c.cmd.Path = unshare
	c.start(t)
	c.end(t, 0)
	for _, want := range []string{"cannot use in-cluster configuration here", "KUBECONFIG and", "~/.kube/config work"} {
		if text := strings.Join(strings.Fields(c.stdout.String()), " "); strings.Count(text, want) != 1 {
			t.Errorf("%q is not there once:\n%s", want, c.stdout)
		}
	}
}
