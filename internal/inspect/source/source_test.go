package source

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/inspect/api"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestAnExportedSessionGivesTheSameAnswers(t *testing.T) {
	first, err := Open("../testdata/session.trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "copy")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.Export(t.Context(), out), out.Close()); err != nil {
		t.Fatal(err)
	}
	second, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	q, _ := inspect.Named("why")
	one, err1 := first.Ask(t.Context(), q, inspect.Query{})
	two, err2 := second.Ask(t.Context(), q, inspect.Query{})
	a, b := *one.(*[]*inspect.Reconcile), *two.(*[]*inspect.Reconcile)
	if err := errors.Join(err1, err2); err != nil || len(a) != 6 || len(b) != 6 || a[5].ID != b[5].ID || len(a[0].Writes) != len(b[0].Writes) {
		t.Errorf("%v, %v, %v", a, b, err)
	}
}

func TestWhatIsNoSessionIsRefusedWithTheReason(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte(`{"hello":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		other: "is neither a trace nor a finding", "nowhere": "name the file of a trace", "http://127.0.0.1:1/": "has no token", "https://example.com/": "is not the address of a session",
	} {
		if _, err := Open(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFileCannotBeFollowed(t *testing.T) {
	s, err := Open("../testdata/session.trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	q, _ := inspect.Named("writes")
	if err := Follow(t.Context(), s, q, inspect.Query{}, nil); !errors.Is(err, ErrStill) {
		t.Errorf("%v", err)
	}
}

func TestFollowingReportsEachResultOnceAndReconcilesWhenTheyHaveEnded(t *testing.T) {
	recorded, err := os.ReadFile("../testdata/session.trace.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	_, entries, err := trace.Read(bytes.NewReader(recorded))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"why": 6, "writes": 8, "timeline": 26, "admissions": 2} {
		t.Run(name, func(t *testing.T) {
			log := trace.NewLog(time.Now())
			server, err := api.Start(t.Context(), api.Options{Session: inspect.Follow(t.Context(), log, 0)})
			if err != nil {
				t.Fatal(err)
			}
			defer server.Stop()
			s, err := Open(server.URL())
			if err != nil {
				t.Fatal(err)
			}
			q, _ := inspect.Named(name)
			query := inspect.Query{Limit: 50}
			if q.About == inspect.Required {
				// The object must exist before it can be asked about.
				query.Object = "widget/demo"
				record(log, entries[:3])
				entries := entries[3:]
				go record(log, entries)
			} else {
				go record(log, entries)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			seen := map[int64]bool{}
			err = Follow(ctx, waiting{s, ctx}.client(t), q, query, func(answer any) error {
				for _, seq := range numbers(answer) {
					if seen[seq] {
						t.Errorf("%d is reported again", seq)
					}
					seen[seq] = true
				}
				if len(seen) == want {
					cancel()
				}
				return nil
			})
			if err != nil || len(seen) != want {
				t.Errorf("%d results, %v", len(seen), err)
			}
		})
	}
}

// waiting waits until a session knows the object of the test.
type waiting struct {
	Source
	ctx context.Context
}

func (w waiting) client(t *testing.T) Source {
	t.Helper()
	client := w.Source.(*api.Client)
	q, _ := inspect.Named("overview")
	found := errors.New("there is an entry")
	err := client.Changes(w.ctx, func() error {
		answer, err := client.Ask(w.ctx, q, inspect.Query{})
		if err == nil && answer.(*inspect.Overview).Objects > 0 {
			return found
		}
		return err
	})
	if !errors.Is(err, found) {
		t.Fatal(err)
	}
	return client
}

func record(log *trace.Log, entries []trace.Entry) {
	for _, e := range entries {
		e.At = 0
		if e.Call != nil {
			call := *e.Call
			call.Took = 0
			e.Call = &call
		}
		log.Record(e)
	}
}

func numbers(answer any) (all []int64) {
	switch answer := answer.(type) {
	case *[]inspect.Item:
		for _, x := range *answer {
			all = append(all, x.Seq)
		}
	case *[]*inspect.Write:
		for _, x := range *answer {
			all = append(all, x.Seq)
		}
	case *[]inspect.Admission:
		for _, x := range *answer {
			all = append(all, x.Seq)
		}
	case *[]*inspect.Reconcile:
		for _, x := range *answer {
			all = append(all, x.Seq)
		}
	}
	return all
}
