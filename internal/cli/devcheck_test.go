package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/devloop/session"
	"github.com/koboshi-dev/koboshi/internal/programs"
	"github.com/koboshi-dev/koboshi/internal/project"
)

func TestTheCheckInTheBackgroundIsThatOfTheSameProject(t *testing.T) {
	f := devFlags{check: checkBudget, profile: "gc"}
	o := session.Options{
		Project:  project.Options{Main: "cmd/ship", Manifests: []string{"a.yaml", "b"}, Args: []string{"--zap-log-level=debug"}, WebhookPort: 9444},
		Programs: programs.Set{{Image: "web", Path: "/bin/web"}},
	}
	got := f.checkArgs(&o, "r.json", []string{"TOKEN=secret"})
	for _, want := range []string{"--main=cmd/ship", "--manifests=a.yaml", "--manifests=b", "--args=--zap-log-level=debug", "--webhook-port=9444", "--run=web=/bin/web", "--profile=gc", "--budget=2m0s", "--env=TOKEN"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q lacks %s", got, want)
		}
	}
	if slices.Contains(got, "--") || strings.Contains(strings.Join(got, " "), "secret") {
		t.Errorf("%q", got)
	}
	o.Project.Args, o.Project.Command = nil, []string{"python3", "main.py", "--x"}
	if got := f.checkArgs(&o, "r.json", nil); !slices.Equal(got[len(got)-4:], []string{"--", "python3", "main.py", "--x"}) {
		t.Errorf("%q", got)
	}
	// koboshi check must accept each of the flags.
	check := newCheck(Stdio{})
	for _, arg := range got {
		if name, ok := strings.CutPrefix(arg, "--"); ok {
			if name, _, _ = strings.Cut(name, "="); check.Flags().Lookup(name) == nil {
				t.Errorf("koboshi check has no flag --%s", name)
			}
		}
	}
}

func TestARecordNamesTheFilesOfAKubeconfigWithoutEmptyEntries(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if dir, _ = os.Getwd(); dir == "" {
		t.Fatal("no folder")
	}
	sep := string(filepath.ListSeparator)
	t.Setenv("KUBECONFIG", sep+"a"+sep+"/b")
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if got, want := absolute(rules), filepath.Join(dir, "a")+sep+"/b"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	rules.ExplicitPath = "c"
	if got, want := absolute(rules), filepath.Join(dir, "c"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
