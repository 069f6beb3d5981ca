package judge

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

const (
	driver = ""
	one    = "controller-1"
	two    = "controller-2"
)

// story builds a run, write by write. Each write takes 10 ms.
type story struct {
	t       *testing.T
	run     *evidence.Run
	now     state.Snapshot
	rev     int64
	at      time.Duration
	calls   int64
	uids    int
	runSeed int
}

var seeds int

func tell(t *testing.T) *story {
	t.Helper()
	seeds++
	return &story{t: t, run: &evidence.Run{Scenario: "s"}, now: state.Snapshot{}, rev: 100, runSeed: seeds}
}

func (s *story) tick() time.Duration {
	s.at += 10 * time.Millisecond
	return s.at
}

// step begins a step after the previous one has come to rest.
func (s *story) step(name string) *story {
	s.rest()
	s.run.Steps = append(s.run.Steps, evidence.Step{Name: name, Began: s.rev, BeganAt: s.tick()})
	s.entry(trace.Entry{Step: &trace.Step{Name: name, What: "started"}})
	return s
}

func (s *story) rest() *evidence.Step {
	if len(s.run.Steps) == 0 {
		return nil
	}
	last := &s.run.Steps[len(s.run.Steps)-1]
	if last.Rested == 0 {
		last.Rested, last.RestedAt = s.rev, s.tick()
	}
	return last
}

func (s *story) entry(e trace.Entry) {
	e.Seq, e.At = int64(len(s.run.Entries)+1), s.at
	s.run.Entries = append(s.run.Entries, e)
}

// object parses "Kind.group namespace/name {json}".
func object(t *testing.T, text string) (state.Ref, state.Object) {
	t.Helper()
	kind, rest, _ := strings.Cut(text, " ")
	path, body, _ := strings.Cut(rest, " ")
	ref := state.Ref{GroupKind: schema.ParseGroupKind(kind)}
	var found bool
	if ref.Namespace, ref.Name, found = strings.Cut(path, "/"); !found {
		ref.Namespace, ref.Name = "", path
	}
	content := state.Object{}
	if body != "" {
		if err := json.Unmarshal([]byte(body), &content); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	version := "v1"
	if ref.Group != "" {
		version = ref.Group + "/v1"
	}
	metadata, _ := content["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"], metadata["namespace"] = ref.Name, ref.Namespace
	content["apiVersion"], content["kind"], content["metadata"] = version, ref.Kind, metadata
	return ref, content
}

// puts creates or updates an object.
func (s *story) puts(who, text string) *story {
	s.t.Helper()
	ref, content := object(s.t, s.owner(text))
	s.rev++
	metadata := content["metadata"].(map[string]any)
	before := s.now[ref]
	if uid := before.Metadata("uid"); uid != "" {
		metadata["uid"] = uid
	} else {
		s.uids++
		metadata["uid"] = fmt.Sprintf("%08d-0000-4000-8000-%012d", s.runSeed, s.uids)
	}
	c := state.Change{Revision: s.rev, At: s.tick(), Ref: ref, Op: state.Updated, Before: before, After: content}
	verb := "update"
	if before == nil {
		c.Op, verb = state.Created, "create"
	}
	s.now[ref] = content
	s.run.History.Changes = append(s.run.History.Changes, c)
	s.call(who, verb, ref, 200, s.rev)
	return s
}

// owner replaces "owner:Kind.group namespace/name" with the owner reference.
func (s *story) owner(text string) string {
	i := strings.Index(text, `"owner:`)
	if i < 0 {
		return text
	}
	end := i + 1 + strings.Index(text[i+1:], `"`)
	ref, _ := object(s.t, text[i+7:end])
	owner := fmt.Sprintf(`"ownerReferences":[{"apiVersion":"x/v1","kind":%q,"name":%q,"uid":%q,"controller":true}]`, ref.Kind, ref.Name, s.now[ref].Metadata("uid"))
	return text[:i] + owner + text[end+1:]
}

func (s *story) deletes(who, name string) *story {
	ref, _ := object(s.t, name)
	s.rev++
	s.run.History.Changes = append(s.run.History.Changes, state.Change{Revision: s.rev, At: s.tick(), Ref: ref, Op: state.Deleted, Before: s.now[ref]})
	delete(s.now, ref)
	s.call(who, "delete", ref, 200, 0)
	return s
}

// call records a request of an instance and its answer.
func (s *story) call(who, verb string, ref state.Ref, code int, revision int64) *trace.Call {
	if who == driver {
		return &trace.Call{}
	}
	s.calls++
	c := &trace.Call{ID: s.calls, Verb: verb, Path: "/p", Code: code, Took: 10 * time.Millisecond,
		Target: trace.Target{Group: ref.Group, Version: "v1", Resource: strings.ToLower(ref.Kind) + "s", Namespace: ref.Namespace, Name: ref.Name}}
	if revision > 0 {
		c.ResourceVersion = strconv.FormatInt(revision, 10)
	}
	s.entry(trace.Entry{Instance: who, Call: c})
	return c
}

// idles observes the last step at rest for the given time, and makes n equal requests
// during that time.
func (s *story) idles(n int, watched time.Duration, write func(i int)) *story {
	last := s.rest()
	from, began := len(s.run.Entries), s.at
	for i := range n {
		s.at = began + watched*time.Duration(i+1)/time.Duration(n+1)
		write(i)
	}
	s.at = began + watched
	last.Watched, last.Idle = watched, s.run.Entries[from:]
	return s
}

func (s *story) exits(who string, code int, output string) *story {
	s.tick()
	s.entry(trace.Entry{Instance: who, Process: &trace.Process{What: "exited", ExitCode: code, Output: output}})
	return s
}

func (s *story) killed(who string) *story {
	s.entry(trace.Entry{Instance: who, Process: &trace.Process{What: "killed"}})
	return s
}

func (s *story) healed(stage evidence.Stage) *story {
	last := s.rest()
	last.Healed = stage
	return s
}

// help records the beginning of the first stage of healing other than Wait.
func (s *story) help() *story { return s.begins(evidence.Relist) }

// begins records the beginning of a stage of healing.
func (s *story) begins(stage evidence.Stage) *story {
	s.rest()
	s.tick()
	s.entry(trace.Entry{Fault: &trace.Fault{What: string(stage)}})
	s.tick()
	return s
}

func (s *story) ledger(lines ...string) *story {
	s.rest().Ledger = lines
	return s
}

// after ends the story as a run with a fault.
func (s *story) after(f fault.Fault) *evidence.Run {
	s.rest()
	s.run.Fault, s.run.Applied, s.run.Took = &f, true, s.at
	for i := range s.run.Steps {
		s.run.Steps[i].Faulty = s.run.Steps[i].Name == f.Point.Step
	}
	return s.run
}

func (s *story) end() *evidence.Run {
	s.rest()
	s.run.Took = s.at
	return s.run
}

// reference learns from three runs of the same story.
func reference(t *testing.T, sc *scenario.Scenario, story func(*story)) *Reference {
	t.Helper()
	var runs []*evidence.Run
	for range 3 {
		s := tell(t)
		story(s)
		runs = append(runs, s.end())
	}
	sc.Name = "s"
	r, err := NewReference(sc, runs)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func verdicts(findings []Finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, string(f.Verdict))
	}
	return strings.Join(all, ", ")
}
