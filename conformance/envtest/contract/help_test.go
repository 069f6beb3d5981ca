package contract

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// envtest runs both programs with --help, and searches the output for flags at the start of a line.
func TestHelpListsWhatEnvtestLooksFor(t *testing.T) {
	for _, test := range []struct {
		program, flag string
		want          bool
	}{
		{"etcd", "unsafe-no-fsync", true},
		{"kube-apiserver", "insecure-port", false},
		{"kube-apiserver", "secure-port", true},
	} {
		help := ask(t, test.program, "--help")
		if got := regexp.MustCompile(`(?m)^\s*--` + test.flag + `\b`).MatchString(help); got != test.want {
			t.Errorf("%s --help lists --%s: %v, want %v", test.program, test.flag, got, test.want)
		}
	}
}

// The shims that envtest starts do their work before most of the program's packages are
// initialized, so they start quickly.
func TestHelpIsAnsweredBeforeMostOfTheProgramIsInitialised(t *testing.T) {
	oursOnly(t)
	t.Setenv("GODEBUG", "inittrace=1")
	initialised := func(program string, args ...string) int {
		return len(regexp.MustCompile(`(?m)^init `).FindAllString(ask(t, program, args...), -1))
	}
	all := initialised("kubectl", "version", "--client")
	for _, program := range []string{"etcd", "kube-apiserver"} {
		if early := initialised(program, "--help"); early == 0 || early > all/2 {
			t.Errorf("%s --help comes after %d of %d packages", program, early, all)
		}
	}
}

func TestVersionIsKubernetesOwn(t *testing.T) {
	for program, want := range map[string]string{
		"etcd":           `(?m)^etcd Version: 3\.\d+\.\d+`,
		"kube-apiserver": `(?m)^Kubernetes v\d+\.\d+\.\d+`,
	} {
		if got := ask(t, program, "--version"); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s --version says %q, want a match of %s", program, got, want)
		}
	}
	if got := ask(t, "kubectl", "version", "--client"); !strings.HasPrefix(got, "Client Version: v") {
		t.Errorf("kubectl version --client says %q", got)
	}
}

// ask runs a program, and checks that it exits with 0.
func ask(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(folder, program), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}
