package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/check"
)

func TestABudgetNeedsACompleteCheckOfScenarios(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--upgrade-from=v1"}, "--upgrade-from runs only their first steps; run koboshi check --plan --update-budget instead"},
		{[]string{"--driver=make test"}, "--driver uses a test suite, whose requests depend on its pauses; omit one of them"},
		{[]string{"--shard=1/2"}, "with --shard, each shard would write it; run koboshi check --plan --update-budget once instead"},
		{[]string{"--plan"}, ""}, {[]string{"--resume"}, ""}, {[]string{"--stop-at-first"}, ""},
	} {
		var f checkFlags
		fs := pflag.NewFlagSet("check", pflag.ContinueOnError)
		f.register(fs)
		if err := fs.Parse(append(tt.args, "--update-budget")); err != nil {
			t.Fatal(err)
		}
		o, err := f.options(fs, nil)
		switch {
		case tt.want == "" && (err != nil || !o.UpdateBudget):
			t.Errorf("%q: %v, %v", tt.args, o.UpdateBudget, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%q: %v, want %s", tt.args, err, tt.want)
		}
	}
}

func TestAReplayHasNoBudgetToUpdate(t *testing.T) {
	code, _, stderr := run(t, "check", "replay", "--update-budget", "x.json")
	if code != exitUsage || !strings.Contains(stderr, "unknown flag: --update-budget") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestABudgetIsWrittenOnlyIfTheCheckWasComplete(t *testing.T) {
	const before = "# ours\ncheck:\n  profile: full # why\n"
	budget := map[string]map[string]int32{"life": {"get pods": 14}}
	for name, tt := range map[string]struct {
		result *check.Result
		asked  bool
		after  string
		want   string // in the output or in the error
	}{
		"complete":    {&check.Result{Budget: budget}, true, before + "  requests:\n    # The requests that each scenario needs without a fault: koboshi check --update-budget\n    budget:\n      life:\n        get pods: 14\n", "the budget of requests of 1 scenario is in "},
		"not asked":   {&check.Result{}, false, before, ""},
		"interrupted": {&check.Result{Budget: budget, NoBudget: "the check was interrupted"}, true, before, "koboshi.yaml was not changed, because the check was interrupted; run the command again"},
		"only seeds":  {&check.Result{}, true, before, "every scenario depends on the seed; write a scenario"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "koboshi.yaml")
			if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
			told, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
			if err != nil {
				t.Fatal(err)
			}
			defer told.Close()
			f := checkFlags{updateBudget: tt.asked}
			f.project.Dir = dir
			text := ""
			if err := f.writeBudget(tt.result, Stdio{Err: told}); err != nil {
				text = err.Error()
			}
			said, err := os.ReadFile(told.Name())
			if err != nil {
				t.Fatal(err)
			}
			if text += string(said); !strings.Contains(text, tt.want) || strings.Count(strings.TrimSpace(text), "\n") > 0 {
				t.Errorf("it says %q, want %q in one line", text, tt.want)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != tt.after {
				t.Errorf("the file is now\n%s%v", got, err)
			}
		})
	}
}
