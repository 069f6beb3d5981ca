package text

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/inspect/source"
)

var update = flag.Bool("update", false, "write the golden files")

// ask returns the text of an answer about the recorded session.
func ask(t *testing.T, name string, query inspect.Query, o Options) string {
	t.Helper()
	from, err := source.Open("../testdata/session.trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	q, _ := inspect.Named(name)
	if q.About != inspect.None && query.Object == "" {
		query.Object = "widget/demo"
	}
	answer, err := from.Ask(t.Context(), q, query)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Write(&out, answer, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestEveryAnswerIsReadableIn80Columns(t *testing.T) {
	queries := map[string]inspect.Query{"entry": {Seq: 5}, "diff": {From: 10, To: 16}, "owners": {Object: "secret/demo-password"}}
	for _, q := range inspect.Questions {
		t.Run(q.Name, func(t *testing.T) {
			got := ask(t, q.Name, queries[q.Name], Options{})
			if q.Name != "entry" && q.Name != "content" {
				for line := range strings.Lines(got) {
					if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
						t.Errorf("a line has %d columns: %s", n, line)
					}
				}
			}
			golden := filepath.Join("testdata", q.Name+".txt")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("to update the file, run go test ./internal/inspect/text -update (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnusedPermissionsAreListedWithTheirRoles(t *testing.T) {
	unused := func(verb, group, resource string) inspect.Unused {
		return inspect.Unused{Permission: inspect.Permission{Verb: verb, Group: group, Resource: resource}, Role: "ClusterRole manager-role", File: "config/rbac/role.yaml"}
	}
	named, idle := unused("get", "", "secrets"), unused("create", "coordination.k8s.io", "leases")
	named.Names, idle.Role, idle.File, idle.Namespace, idle.Unseen = []string{"a", "b"}, "Role election", "", "system", "there is no election"
	report := inspect.PermissionReport{
		Account: "system/manager", Unknown: []string{"view"}, Note: "What it means.",
		Unused: []inspect.Unused{unused("delete", "apps", "deployments"), unused("patch", "apps", "deployments"), named, idle},
	}
	var out bytes.Buffer
	if err := Write(&out, &report, Options{}); err != nil {
		t.Fatal(err)
	}
	const want = `the controller made no request

granted to system/manager, but not used in this session:
  ClusterRole manager-role (config/rbac/role.yaml)
    deployments.apps: delete, patch
    secrets: get of a, b
  Role election in namespace system
    leases.coordination.k8s.io: create (perhaps needed: there is no election)
  role view is bound too, but its rules are not known

What it means.
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAReplayIsShownWithWhatDiffers(t *testing.T) {
	allowed := false
	a := inspect.Admission{
		Seq: 9, Kind: "admission", Path: "/validate", Operation: "UPDATE", Allowed: &allowed, Message: "too large", Code: 200,
		Replay: &inspect.Replay{Of: 4, Known: true, Differences: []inspect.FieldChange{
			{Path: "allowed", Before: []byte("true"), After: []byte("false")}, {Path: "patch", Before: []byte("[]")}, {Path: "warnings", After: []byte("[1]")},
		}},
	}
	text := func() string {
		var out bytes.Buffer
		if err := Write(&out, &a, Options{Width: 120}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	const want = `     0.000 s  sent again to /validate: denied the update: too large; the answer differs from entry 4 in allowed, patch,
              warnings, 0s, entry 9
              ~ allowed: true → false
              - patch: []
              + warnings: [1]
`
	if diff := cmp.Diff(want, text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	a.Replay.Differences = nil
	if got := text(); !strings.Contains(got, "the same answer as in entry 4") {
		t.Error(got)
	}
	a.Replay.Known = false
	if got := text(); !strings.Contains(got, "(entry 4) is no longer known") {
		t.Error(got)
	}
}

func TestOnlyATerminalGetsColours(t *testing.T) {
	if got := ask(t, "overview", inspect.Query{}, Options{}); strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
	if got := ask(t, "overview", inspect.Query{}, Options{Color: true}); !strings.Contains(got, "\x1b[1;33mstatus.lastSync") {
		t.Errorf("%q", got)
	}
}

func TestTextOfAControllerCannotControlTheTerminal(t *testing.T) {
	var out bytes.Buffer
	items := []inspect.Item{{Kind: "line", Text: "a\x1b[2Jb\rc\u202ed"}}
	if err := Write(&out, &items, Options{Color: true}); err != nil || strings.ContainsAny(out.String(), "\r\u202e") || strings.Contains(out.String(), "\x1b[2J") {
		t.Errorf("%q, %v", out.String(), err)
	}
}

func TestALongWordIsBroken(t *testing.T) {
	for _, line := range wrap(strings.Repeat("x", 25)+" y", 10) {
		if len(line) > 10 {
			t.Errorf("%q", line)
		}
	}
}
