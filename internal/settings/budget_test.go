package settings

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var life = Budget{"web-life": {"get pods": 14, "create events": 3}}

const lifeLines = `# The requests that each scenario needs without a fault: koboshi check --update-budget
budget:
  web-life:
    create events: 3
    get pods: 14
`

func deeper(by, text string) (out string) {
	for line := range strings.Lines(text) {
		out += by + line
	}
	return out
}

func TestABudgetChangesNothingElseInTheFile(t *testing.T) {
	whole := "check:\n  requests:\n" + deeper("    ", lifeLines)
	for name, tt := range map[string]struct {
		before string
		budget Budget
		after  string
	}{
		"an empty file":         {"", life, whole},
		"only comments":         {"# ours\n\n# more\n", life, "# ours\n\n# more\n" + whole},
		"no end of the line":    {"# ours", life, "# ours\n" + whole},
		"nothing to write":      {"# ours\n", Budget{}, "# ours\n"},
		"no section for checks": {"{}\n# end", Budget{}, "{}\n# end"},
		"other settings": {
			"# ours\n\ncheck:\n  # why\n  ignore:\n  - Widget.x status.seen   # a clock\n  # - Widget.x status.old\n\n# the end\n", life,
			"# ours\n\ncheck:\n  # why\n  ignore:\n  - Widget.x status.seen   # a clock\n  # - Widget.x status.old\n  requests:\n" + deeper("    ", lifeLines) + "\n# the end\n"},
		"other settings with four spaces": {
			"check:\n    rest: {quiet: 1s}\n    faults:\n        skip: [restart]", life,
			"check:\n    rest: {quiet: 1s}\n    faults:\n        skip: [restart]\n    requests:\n" + deeper("      ", lifeLines)},
		"a text of several lines": {
			"check:\n  pods:\n  - name: a\n    exec:\n    - command: [x]\n      stdout: |\n        one\n\n        # two\n\n", life,
			"check:\n  pods:\n  - name: a\n    exec:\n    - command: [x]\n      stdout: |\n        one\n\n        # two\n  requests:\n" + deeper("    ", lifeLines) + "\n"},
		"a comment that is not indented": {
			"check:\n  ignore:\n# - Widget.x status.old\n  - Widget.x status.seen\n", life,
			"check:\n  ignore:\n# - Widget.x status.old\n  - Widget.x status.seen\n  requests:\n" + deeper("    ", lifeLines)},
		"accepted lists": {
			"check:\n  requests:\n    lists: [pods] # few\n  profile: gc\n", life,
			"check:\n  requests:\n    lists: [pods] # few\n" + deeper("    ", lifeLines) + "  profile: gc\n"},
		"lines that end as on Windows": {
			"check:\r\n  profile: gc\r\n", life,
			"check:\r\n  profile: gc\r\n  requests:\r\n" + strings.ReplaceAll(deeper("    ", lifeLines), "\n", "\r\n")},
		"a marker at the end": {"---\ncheck:\n  profile: gc\n...\n", life, "---\ncheck:\n  profile: gc\n  requests:\n" + deeper("    ", lifeLines) + "...\n"},
		"other numbers": {
			"check:\n  requests:\n    budget: # reviewed\n      web-life:\n        get pods: 9 # once per Pod\n        create events: 3\n      old: {get pods: 1}\n", life,
			"check:\n  requests:\n    budget: # reviewed\n      web-life:\n        get pods: 14 # once per Pod\n        create events: 3\n      old: {get pods: 1}\n"},
		"rows come and go": {
			"check:\n  requests:\n    budget:\n      web-life:\n        # ours\n        get nodes: 2\n        get pods: 14\n\n      old:\n        get pods: 1\n", life,
			"check:\n  requests:\n    budget:\n      web-life:\n        # ours\n        get pods: 14\n        create events: 3\n\n      old:\n        get pods: 1\n"},
		"a new scenario": {
			"check:\n  requests:\n    budget:\n      old:\n        get pods: 1\n  profile: gc\n", life,
			"check:\n  requests:\n    budget:\n      old:\n        get pods: 1\n      web-life:\n        create events: 3\n        get pods: 14\n  profile: gc\n"},
		"a scenario that needs nothing any more": {
			"check:\n  requests:\n    budget:\n      a:\n        get pods: 1\n      b: {}\n", Budget{"a": {}, "b": {}},
			"check:\n  requests:\n    budget:\n      a: {}\n      b: {}\n"},
		"a scenario that needed nothing": {
			"check:\n  requests:\n    budget:\n      a: {}\n      b: {}\n", Budget{"a": {"get pods": 1}},
			"check:\n  requests:\n    budget:\n      a:\n        get pods: 1\n      b: {}\n"},
		"names that need quotes": {
			"", Budget{"true": {"get pods": 1}},
			"check:\n  requests:\n    # The requests that each scenario needs without a fault: koboshi check --update-budget\n    budget:\n      \"true\":\n        get pods: 1\n"},
		"numbers in braces": {
			"check: {requests: {budget: {web-life: {get pods: 1, create events: 30}}}}\n", life,
			"check: {requests: {budget: {web-life: {get pods: 14, create events: 3}}}}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := withBudget("koboshi.yaml", []byte(tt.before), tt.budget)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.after, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			again, err := withBudget("koboshi.yaml", got, tt.budget)
			if err != nil || string(again) != string(got) {
				t.Errorf("a second time, it is\n%s%v", again, err)
			}
		})
	}
}

func TestAFileThatCannotBeEditedSafelyStaysAsItIs(t *testing.T) {
	for name, before := range map[string]string{
		"settings in braces":   "check: {profile: gc}\n",
		"an empty section":     "check: {}\n",
		"a budget in braces":   "check:\n  requests: {budget: {}}\n",
		"a row in braces":      "check:\n  requests:\n    budget:\n      web-life: {get nodes: 3}\n",
		"a mistake":            "check:\n  profle: gc\n",
		"two documents":        "check:\n  profile: gc\n---\ncheck:\n  profile: gc\n",
		"an alias of a budget": "check:\n  requests:\n    budget:\n      web-life: &a\n        get pods: 1\n      b: *a\n",
		"an indented document": "check:\n  requests:\n    budget:\n      web-life:\n        ? get pods\n        : 3\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), Name)
			if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := UpdateBudget(path, life); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v", err)
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != before {
				t.Errorf("the file is now\n%s%v", got, err)
			}
			onlyFile(t, filepath.Dir(path))
		})
	}
}

// onlyFile fails if a folder has more than one file.
func onlyFile(t *testing.T, dir string) {
	t.Helper()
	if all, err := os.ReadDir(dir); err != nil || len(all) > 1 {
		t.Errorf("in the folder: %v, %v", all, err)
	}
}

func TestABudgetIsWrittenToANewFileOrInPlaceOfTheOldOne(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Name)
	if err := UpdateBudget(path, life); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if err != nil || !reflect.DeepEqual(got.Check.Requests.Budget, life) {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.yaml")
	if err := os.Symlink(Name, link); err != nil {
		t.Fatal(err)
	}
	if err := UpdateBudget(link, Budget{"web-life": {"get pods": 2}}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
	if info, err = os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file is %v, %v", info, err)
	}
	if got, err = Load(path); err != nil || got.Check.Requests.Budget["web-life"]["get pods"] != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := UpdateBudget(filepath.Join(dir, "none", Name), life); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a folder that does not exist: %v", err)
	}
}

func FuzzABudgetKeepsAllOtherSettings(f *testing.F) {
	f.Add([]byte(complete), "web-life", "get pods", int32(3))
	f.Add([]byte("check:\n  requests:\n    budget:\n      a:\n        get pods: 1\n"), "a", "list nodes", int32(3))
	f.Add([]byte("check:\n  ignore:\n  - a b\n\n# end"), "a", "list nodes", int32(0))
	f.Fuzz(func(t *testing.T, before []byte, scenario, name string, n int32) {
		old, err := Parse(Name, before)
		if err != nil {
			return
		}
		budget := Budget{scenario: {name: n}}
		after, err := withBudget(Name, before, budget)
		if err != nil {
			return
		}
		got, err := Parse(Name, after)
		if err != nil {
			t.Fatalf("%v in\n%s", err, after)
		}
		old.Check.Requests.Budget = merged(old.Check.Requests.Budget, budget)
		if diff := cmp.Diff(old, got); diff != "" {
			t.Errorf("%s", diff)
		}
	})
}
