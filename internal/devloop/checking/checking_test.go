package checking

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// within limits each wait. On a loaded machine, everything is slow.
const within = 5 * time.Minute

// bench is a checker whose check is a shell script. The real check is tested in conformance.
type bench struct {
	t     *testing.T
	dir   string
	c     *Checker
	notes chan string
}

// start starts a checker. The script may wait for the file go, and finds its next report in the
// file next.
func start(t *testing.T, script string) *bench {
	b := &bench{t: t, dir: t.TempDir(), notes: make(chan string, 100)}
	b.c = Start(t.Context(), Options{
		Command: func() (command, env []string, err error) { return []string{"sh", "-c", script}, os.Environ(), nil },
		Report:  filepath.Join(b.dir, "report.json"), Findings: filepath.Join(b.dir, "findings"), Dir: b.dir, Note: func(text string) { b.notes <- text },
	})
	t.Cleanup(b.c.Close)
	return b
}

// next sets the report of the next check, with a finding for each ID.
func (b *bench) next(r report.Report, ids ...string) {
	b.t.Helper()
	r.Version = 1
	for _, id := range ids {
		r.Findings = append(r.Findings, judge.Finding{ID: id, Verdict: judge.Diverged, Sentence: id + " is wrong", Replay: "koboshi check replay " + id})
	}
	data, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(filepath.Join(b.dir, "next"), data, 0o600)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// save saves a finding as a check does.
func (b *bench) save(id string, unconfirmed bool) {
	b.t.Helper()
	_, err := report.SaveFinding(filepath.Join(b.dir, "findings"), report.Saved{
		Finding: judge.Finding{ID: id, Verdict: judge.Diverged, Sentence: id + " is wrong"}, Unconfirmed: unconfirmed,
		Scenario: scenario.Scenario{APIVersion: scenario.APIVersion, Kind: scenario.Kind, Name: "life", Steps: []scenario.Step{{
			Name: "delete", Delete: &scenario.Delete{ObjectRef: scenario.ObjectRef{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}},
		}}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// hears waits for the notes.
func (b *bench) hears(want ...string) {
	b.t.Helper()
	var got []string
	for range want {
		select {
		case note := <-b.notes:
			got = append(got, note)
		case <-time.After(within):
			b.t.Fatalf("got only %q", got)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Error(diff)
	}
}

// exists waits until the file exists in the script's folder.
func (b *bench) exists(name string) {
	b.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(within); ; {
		if _, err := os.Stat(filepath.Join(b.dir, name)); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			b.t.Fatalf("there is no file %s", name)
		}
	}
}

func (b *bench) edit(runs bool, files ...string) {
	b.c.Begin()
	b.c.End(files, runs)
}

func TestOnlyWhatIsNewIsReportedWithTheEditsSinceTheLastCompleteCheck(t *testing.T) {
	b := start(t, "cp next report.json")
	b.next(report.Report{Runs: 7})
	b.edit(true)
	b.hears("check: no findings with 7 faults")
	b.next(report.Report{Runs: 2, References: 2})
	b.edit(true)
	b.hears("check: the time limit was used up before a fault was injected; allow more time")
	b.next(report.Report{}, "one")
	b.edit(false, "a.go") // it does not compile
	b.edit(true, "b.go")
	b.hears("check: DIVERGED (new since the edit of a.go, b.go): one is wrong; replay it with: koboshi check replay one")
	b.next(report.Report{}, "one", "two")
	b.edit(true, "c.go")
	b.hears("check: DIVERGED (new since the edit of c.go): two is wrong; replay it with: koboshi check replay two")
	b.next(report.Report{Fixed: []report.Fixed{{ID: "one", Verdict: judge.Diverged, Sentence: "one is wrong"}}}, "two")
	b.edit(true, "d.go")
	b.hears("check: no longer found: DIVERGED: one is wrong")
	b.next(report.Report{Idle: "the controller wrote nothing"})
	b.edit(true, "e.go")
	b.hears("check: not possible: no result: the controller wrote nothing")
	b.next(report.Report{}, "one", "two")
	b.edit(true, "f.go")
	b.hears("check: DIVERGED (new since the edit of e.go, f.go): one is wrong; replay it with: koboshi check replay one")
}

func TestAnEditEndsTheCheckAndWhatItHasFoundIsReported(t *testing.T) {
	b := start(t, `cp next report.json
[ -e quick ] || slow=1
touch started
[ -z "$slow" ] || { trap 'exit 2' TERM; while :; do sleep 0.05; done; }`)
	b.next(report.Report{Stopped: "interrupted"}, "one")
	b.edit(true, "a.go")
	b.exists("started")
	if err := os.WriteFile(filepath.Join(b.dir, "quick"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.next(report.Report{}, "one", "two")
	b.edit(true, "b.go")
	b.hears(
		"check: DIVERGED (no check was complete before): one is wrong; replay it with: koboshi check replay one",
		"check: DIVERGED (no check was complete before): two is wrong; replay it with: koboshi check replay two")
}

func TestAFindingIsReportedBeforeTheCheckEnds(t *testing.T) {
	b := start(t, `touch started
trap 'cp next report.json; exit 1' TERM
while :; do sleep 0.05; done`)
	b.save("earlier", false)
	b.edit(true, "a.go")
	b.exists("started")
	b.save("doubtful", true)
	b.save("one", false)
	b.hears("check: DIVERGED (no check was complete before): one is wrong; replay it with: koboshi check replay " +
		filepath.Join(b.dir, "findings", "DIVERGED-one.json"))
	b.next(report.Report{Stopped: "interrupted"}, "one", "two")
	b.c.Begin()
	b.hears("check: DIVERGED (no check was complete before): two is wrong; replay it with: koboshi check replay two")
}

func TestAFailureIsReportedOnce(t *testing.T) {
	b := start(t, `if [ -e next ]; then cp next report.json; else echo "could not check: there is no sample"; echo >>ran; [ "$(wc -l <ran)" != 2 ] || touch twice; exit 2; fi`)
	b.edit(true)
	if note := <-b.notes; !strings.HasPrefix(note, "check: not possible: ") || !strings.Contains(note, "there is no sample") {
		t.Errorf("got %q", note)
	}
	b.c.End([]string{"a.go"}, true) // fails for the same reason
	b.exists("twice")
	b.next(report.Report{Runs: 3, References: 1})
	b.edit(true, "b.go")
	b.hears("check: no findings with 2 faults")
}
