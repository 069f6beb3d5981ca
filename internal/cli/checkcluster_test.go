package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/oncluster"
	"github.com/koboshi-dev/koboshi/internal/check/report"
)

// clusterFlagsOf parses a command line of koboshi check.
func clusterFlagsOf(t *testing.T, args ...string) (*checkFlags, *pflag.FlagSet) {
	t.Helper()
	var f checkFlags
	fs := pflag.NewFlagSet("check", pflag.ContinueOnError)
	f.register(fs)
	f.cluster.register(fs)
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &f, fs
}

func TestPodsGetTheFlagsOfTheCheckWithPathsOfTheImage(t *testing.T) {
	t.Chdir(t.TempDir())
	f, fs := clusterFlagsOf(t, "--on-cluster", "--image=check:v1", "--shards=3", "--dir=sea", "--scenario=sea/check/life.yaml", "--crds=config/crd",
		"--faults=conflict,kill-lost", "--workers=2", "--budget=2m", "--inputs", "--output=json=part.json", "--findings=here", "--keep", "--args=--x=a b")
	got, err := f.cluster.args(fs, f.project.Dir, 7)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"--args=--x=a b", "--budget=2m0s", "--crds=config/crd", "--faults=conflict", "--faults=kill-lost", "--inputs=true", "--scenario=check/life.yaml", "--seed=7", "--workers=2"}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	for _, arg := range planArgs(got) {
		if strings.HasPrefix(arg, "--inputs") || strings.HasPrefix(arg, "--budget") {
			t.Errorf("the Pod that learns the plan gets %s", arg)
		}
	}
	again, _ := clusterFlagsOf(t, got...) // the Pod understands them
	if !slices.Equal(again.kinds, f.kinds) || !slices.Equal(again.project.Args, f.project.Args) {
		t.Errorf("the Pod reads %q and %q", again.kinds, again.project.Args)
	}
}

func TestFlagsThatPodsCannotHonorAreRefusedWithTheReason(t *testing.T) {
	for want, args := range map[string][]string{
		"--shards applies only to --on-cluster":                  {"--shards=2"},
		"name it with --image":                                   {"--on-cluster"},
		"its values would be readable in the cluster":            {"--on-cluster", "--image=a", "--env=TOKEN=secret"},
		"--shards is 0; use 1 to 100":                            {"--on-cluster", "--image=a", "--shards=0"},
		"--resume cannot be combined with --on-cluster":          {"--on-cluster", "--image=a", "--resume"},
		"there can be no command after --":                       {"--on-cluster", "--image=a", "--", "manager"},
		"outside of the project, and the image has only files":   {"--on-cluster", "--image=a", "--scenario=../life.yaml"},
		"--crds: ../crds is outside of the project":              {"--on-cluster", "--image=a", "--crds=../crds"},
		"write a quantity such as 2 or 500m for processors, and": {"--on-cluster", "--image=a", "--shard-cpu=many"},
	} {
		f, fs := clusterFlagsOf(t, args...)
		err := f.cluster.combine(fs, fs.Args())
		if err == nil {
			_, err = f.cluster.options(fs, ".", 1)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

func TestAPodThatIsNoneOfACheckSaysSo(t *testing.T) {
	code, _, stderr := run(t, "check", "pod", "--phase=plan")
	if code != exitUsage || !strings.Contains(stderr, "runs only in Pods of koboshi check --on-cluster") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

func TestAFindingOfAShardCannotNameAnotherFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, name := range []string{"../outside", "inner/finding.json", ".."} {
		if err := takeFindings(&check.Result{}, &oncluster.Part{Findings: map[string][]byte{name: nil}}); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if _, err := os.Stat(filepath.Join(os.TempDir(), "outside")); err == nil {
		t.Error("a file outside of the folder was written")
	}
}

func TestAnInterruptedCheckOnAClusterReportsTheShardsThatHaveEnded(t *testing.T) {
	f, _ := clusterFlagsOf(t, "--on-cluster", "--image=a")
	ended := &oncluster.Part{Report: &report.Report{Version: report.Version, Subject: "sea", Shard: "2/3", WholePlan: 9, LeftToShards: 6}}
	result := &oncluster.Result{Parts: []*oncluster.Part{nil, ended, nil}}
	if !result.HasParts() || (*oncluster.Result)(nil).HasParts() {
		t.Error("it is not seen whether there is a result")
	}
	merged, err := f.mergeParts(result, &check.Options{}, context.Canceled)
	if err != nil {
		t.Fatal(err)
	}
	if r := merged.Report; r.Stopped != "stopped after 1 of 3 shards: context canceled" || r.MissingShards != 2 || r.ExitCode() != exitUsage {
		t.Errorf("%q, %d shards are missing, exit code %d", r.Stopped, r.MissingShards, r.ExitCode())
	}
}
