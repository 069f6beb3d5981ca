package conformance

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// A shell runs koboshi completion each time it starts, so the command must answer before Kubernetes
// is initialized. The initialization involves about 280 packages and takes a tenth of a second.
func TestHelpCompletionAndVersionDoNotInitialiseKubernetes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the texts are generated for Linux")
	}
	for _, args := range [][]string{{"--help"}, {"check", "--help"}, {"help", "up"}, {"completion", "bash"}, {"version"}, {"version", "-o", "json"}} {
		cmd := exec.Command(koboshi, args...)
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		var out, trace bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &trace
		if err := cmd.Run(); err != nil || out.Len() == 0 {
			t.Errorf("koboshi %s printed %d bytes: %v", strings.Join(args, " "), out.Len(), err)
		}
		packages := initialised(trace.String())
		if len(packages) == 0 || len(packages) > 60 {
			t.Errorf("koboshi %s initialised %d packages, want 1 to 60: %s", strings.Join(args, " "), len(packages), packages)
		}
	}
}

// initialised returns the packages in a trace of initializations, whose lines start with
// "init PACKAGE @".
func initialised(trace string) []string {
	var packages []string
	for line := range strings.Lines(trace) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "init" {
			packages = append(packages, f[1])
		}
	}
	return packages
}
