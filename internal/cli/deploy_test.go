package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAWrongCallOfDeployIsRefusedBeforeTheClusterIsAsked(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	manifest := filepath.Join(dir, "install.yaml")
	if err := os.WriteFile(manifest, []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no manifest":             {nil, "make dist/install.yaml with koboshi ship"},
		"an unknown format":       {[]string{"-o", "yaml"}, `unknown output format "yaml"`},
		"a client's dry run":      {[]string{"--dry-run", "client"}, "use --dry-run=server"},
		"a deletion that is none": {[]string{"--delete", "--diff"}, "cannot be combined with --diff"},
		"two outputs":             {[]string{"--diff", "-o", "json"}, "cannot be combined with -o"},
		"an argument":             {[]string{"now"}, "takes no arguments"},
		"no kubeconfig":           {[]string{"-f", manifest, "--kubeconfig", filepath.Join(dir, "missing")}, "correct --kubeconfig or --context"},
		"no such context":         {[]string{"-f", manifest, "--context", "nowhere"}, "correct --kubeconfig or --context"},
	} {
		code, _, messages := run(t, append([]string{"deploy"}, c.args...)...)
		if code != exitUsage || !strings.Contains(messages, c.want) {
			t.Errorf("%s: exit code %d, %s", name, code, messages)
		}
	}
}
