package journal

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

func header(flags ...string) Header {
	return Header{Program: "v1", Flags: flags, Subject: "s", Scenarios: "c", Seed: 7, Started: time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC)}
}

func ran(object string) Ran {
	return Ran{Scenario: "life", Fault: fault.Fault{Kind: fault.KillLost, Point: fault.Point{Object: object}}, Took: time.Second}
}

func TestResumedCheckKnowsWhatWasRecorded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	j := New(dir, header("--faults=conflict"))
	finding := judge.Finding{ID: "1", Verdict: judge.Diverged, Scenario: "life"}
	doubt := Doubtful{Scenario: "life", Fault: ran("b").Fault, Finding: finding, Why: "it was found in 1 of 4 runs"}
	j.Ran(ran("a"))
	j.Found(finding)
	j.Doubtful(doubt)
	j.Close(false)

	again, known, err := Resume(dir, Header{Program: "v1", Flags: []string{"--faults=conflict"}})
	if err != nil {
		t.Fatal(err)
	}
	want := &Known{Header: j.header, Ran: []Ran{ran("a")}, Found: []judge.Finding{finding}, Doubtful: []Doubtful{doubt}}
	if diff := cmp.Diff(want, known); diff != "" {
		t.Error(diff)
	}
	again.Ran(ran("c"))
	again.Close(false)
	if _, known, err = Resume(dir, header("--faults=conflict")); err != nil || len(known.Ran) != 2 {
		t.Errorf("after the second interruption: %+v, %v", known, err)
	}
}

func TestJournalOfAnotherCheckIsRefusedWithTheDifference(t *testing.T) {
	dir := t.TempDir()
	j := New(dir, header("--faults=conflict"))
	j.Ran(ran("a"))
	j.Close(false)
	program, subject, scenarios := header("--faults=conflict"), header("--faults=conflict"), header("--faults=conflict")
	program.Program, subject.Subject, scenarios.Scenarios = "v2", "t", "d"
	for want, h := range map[string]Header{
		"other flags (--faults=conflict)":     header(),
		"another version of koboshi (v1)":     program,
		"another build of the controller":     subject,
		"other scenarios or samples":          scenarios,
		"omit --resume to start again":        header("--faults=restart"),
		filepath.Join(dir, "check-20261125-"): header(),
	} {
		if _, _, err := Resume(dir, h); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, _, err := Resume(t.TempDir(), header()); err == nil || !strings.Contains(err.Error(), "there is no interrupted check") {
		t.Errorf("%v", err)
	}
}

func TestCompleteCheckLeavesNoJournal(t *testing.T) {
	for what, record := range map[string]func(*Journal){
		"something": func(j *Journal) { j.Ran(ran("a")) }, "nothing": func(*Journal) {},
	} {
		dir := filepath.Join(t.TempDir(), "journal")
		j := New(dir, header())
		record(j)
		j.Close(true)
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("after %s was recorded, the folder is left: %v", what, err)
		}
	}
}

func TestTwoChecksAtOnceHaveTheirOwnJournals(t *testing.T) {
	dir := t.TempDir()
	var all []*Journal
	for range 2 {
		j := New(dir, header())
		all = append(all, j)
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() { j.Ran(ran("a")) })
		}
		wait.Wait()
	}
	if _, _, err := Resume(dir, header()); err == nil || !strings.Contains(err.Error(), "is still running") {
		t.Errorf("a journal in use is resumed: %v", err)
	}
	all[0].Close(false)
	if _, known, err := Resume(dir, header()); err != nil || len(known.Ran) != 20 {
		t.Errorf("%+v, %v", known, err)
	}
	all[1].Close(true)
	if left := journals(dir); len(left) != 1 {
		t.Errorf("the journals left are %v", left)
	}
}

func TestLineThatAKilledCheckDidNotCompleteIsSkipped(t *testing.T) {
	dir := t.TempDir()
	j := New(dir, header())
	j.Ran(ran("a"))
	if _, err := j.file.WriteString(`{"ran":{"scenario":"li`); err != nil {
		t.Fatal(err)
	}
	j.Close(false)
	again, known, err := Resume(dir, header())
	if err != nil || len(known.Ran) != 1 {
		t.Fatalf("%+v, %v", known, err)
	}
	again.Ran(ran("b"))
	again.Close(false)
	if _, known, err = Resume(dir, header()); err != nil || len(known.Ran) != 2 || known.Ran[1].Fault.Point.Object != "b" {
		t.Errorf("%+v, %v", known, err)
	}
}

func TestOldJournalsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 * most {
		j := New(dir, header())
		j.Ran(ran("a"))
		j.Close(false)
		at := time.Unix(int64(i), 0)
		if err := os.Chtimes(journals(dir)[0], at, at); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(journals(dir)); n != most {
		t.Errorf("%d journals are left, want %d", n, most)
	}
}

func TestJournalThatCannotBeWrittenDoesNotStopTheCheck(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j := New(filepath.Join(file, "journal"), header())
	j.Ran(ran("a"))
	if j.Err() == nil {
		t.Error("no error is reported")
	}
	j.Close(false)
	var none *Journal
	none.Ran(ran("a"))
	none.Close(true)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("{\"version\":1}\n{\"ran\":{}}\n{\"found\":{}}\nx\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if known, err := read(data); err == nil && known.Version != Version {
			t.Errorf("read a journal of version %d", known.Version)
		}
	})
}
