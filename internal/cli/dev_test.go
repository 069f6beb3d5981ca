package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/devloop/session"
)

// parseDev returns the options with which koboshi dev would start a session.
func parseDev(t *testing.T, args ...string) (session.Options, error) {
	t.Helper()
	var f devFlags
	fs := pflag.NewFlagSet("dev", pflag.ContinueOnError)
	f.register(fs)
	if err := fs.Parse(args); err != nil {
		return session.Options{}, err
	}
	return f.options(fs.Args())
}

func TestArgumentsAfterTheDashesAreTheManagersOrACommand(t *testing.T) {
	dir := t.TempDir()
	o, err := parseDev(t, "--dir", dir, "--", "--zap-devel")
	if err != nil || len(o.Project.Command) > 0 {
		t.Fatalf("%v, %+v", err, o)
	}
	if diff := cmp.Diff([]string{"--zap-devel"}, o.Project.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	o, err = parseDev(t, "--dir", dir, "--watch=src/**", "--", "python3", "src/main.py")
	if err != nil || len(o.Project.Args) > 0 {
		t.Fatalf("%v, %+v", err, o)
	}
	if diff := cmp.Diff([]string{"python3", "src/main.py"}, o.Project.Command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
}

func TestFlagsOfDevThatCannotWorkAreRefused(t *testing.T) {
	for says, args := range map[string][]string{
		"--watch needs a command after --":                                     {"--watch=src/**"},
		"is not a pattern of files":                                            {"--watch=[", "--", "true"},
		"--debug changes how a manager is built":                               {"--watch=*.py", "--debug", "--", "true"},
		"which is not a folder":                                                {"--dir=missing"},
		"cannot be read again after an edit":                                   {"--manifests=-"},
		"--webhook-port is 70000":                                              {"--webhook-port=70000"},
		`unknown profile "ful"; did you mean "full"`:                           {"--profile=ful"},
		"profile api has none":                                                 {"--run=web=/bin/sh", "--profile=api"},
		"NOT_SET is not set in your environment":                               {"--env=NOT_SET"},
		`--log is "json"; use short, full or plain`:                            {"--log=json"},
		"--check is -1m0s":                                                     {"--check=-1m"},
		"--profile applies only to the cluster that koboshi dev starts itself": {"--context=kind-test", "--profile=gc"},
		"--run applies only to the cluster":                                    {"--kubeconfig=k", "--run=web=/bin/sh"},
	} {
		if _, err := parseDev(t, args...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("dev %q: got %v, want … %s", args, err, says)
		}
	}
}

func TestPodsThatRunProgramsNeedAProfileWithAScheduler(t *testing.T) {
	o, err := parseDev(t, "--run=web=/bin/sh")
	if err != nil || o.Profile != profileOfPrograms || len(o.Programs) != 1 {
		t.Errorf("%v, %+v", err, o)
	}
}

func TestVariablesOfDotEnvGiveWayToTheEnvironmentAndToFlags(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, ".env")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# a comment\nexport DOTENV_A='1 2'\nDOTENV_B=mine\nDOTENV_C=3\n")
	t.Setenv("DOTENV_B", "yours")
	o, err := parseDev(t, "--dir", dir, "--env=DOTENV_C=4")
	if err != nil {
		t.Fatal(err)
	}
	env, err := o.Env()
	if diff := cmp.Diff([]string{"DOTENV_A=1 2", "DOTENV_C=3", "DOTENV_C=4"}, env); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	write("DOTENV_A=5\n") // as an edit does while koboshi dev runs
	if env, err = o.Env(); err != nil || env[0] != "DOTENV_A=5" {
		t.Errorf("%v, %q", err, env)
	}
	write("A!=1\n")
	if _, err := parseDev(t, "--dir", dir); err == nil || !strings.Contains(err.Error(), ".env") {
		t.Errorf("a broken .env: %v", err)
	}
}

func TestKubectlUsesTheKubeconfigOfDevFirst(t *testing.T) {
	t.Chdir(t.TempDir())
	if got := localKubeconfig(); got != "" {
		t.Errorf("without any, got %s", got)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	file, remove, err := devKubeconfig(here)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := devKubeconfig(here); !errors.As(err, &usageError{}) || !strings.Contains(err.Error(), "another koboshi dev runs") {
		t.Errorf("a second koboshi dev in the project: %v", err)
	}
	up := filepath.Join(here, defaultDataDir, "kubeconfig")
	for _, name := range []string{up, file} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := localKubeconfig(); got != name {
			t.Errorf("got %s, want %s", got, name)
		}
	}
	remove()
	if got := localKubeconfig(); got != up {
		t.Errorf("after the end of koboshi dev, got %s, want %s", got, up)
	}
	if err := os.Remove(up); err != nil {
		t.Fatal(err)
	}
	if _, remove, err = devKubeconfig(here); err != nil {
		t.Fatal(err)
	}
	remove()
	if _, err := os.Stat(filepath.Join(here, defaultDataDir)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left behind: %v", err)
	}
}
