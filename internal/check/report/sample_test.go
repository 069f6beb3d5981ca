package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test ./internal/check/report -update writes it", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); if the change is right, run go test -update\n%s", name, diff)
	}
}

// hostile is a malicious object name or log line.
const hostile = "a\x1b]0;owned\x07\u202e\u009bb</script><img src=x onerror=alert(1)>\n::error::x"

func at(step, verb, resource, object string) fault.Point {
	return fault.Point{Step: step, Verb: verb, Resource: resource, Object: object, Occurrence: 1}
}

// sample returns a report with every kind of content. Its findings come from judge.
func sample() *Report {
	kill := &fault.Fault{Kind: fault.KillAfter, Point: at("create", "create", "secrets", "default/viewer-a-ca")}
	stale := &fault.Fault{Kind: fault.DelayWatch, Point: at("scale", "create", "pods", "default/viewer-a-0")}
	divergence, loop, pod := diverged(kill), looping(), blip(stale)
	divergence.Reproduced, divergence.Attempts, divergence.Seed = 3, 3, 4201
	divergence.FoundAfterRuns, divergence.FoundAfterSeconds = 9, 8.3
	divergence.File = ".koboshi/findings/DIVERGED-life-create-1a2b3c4d5e6f.json"
	divergence.Replay = replayCommand(divergence.File)
	divergence.Silence = &judge.Silence{Add: "check:\n  ignore:\n  - Secret default/viewer-a-token *\n", Wrong: "It is wrong if anything depends on the value."}
	loop.Reproduced, loop.Attempts, loop.Seed = 2, 3, 42
	loop.Replay = replayCommand(".koboshi/findings/HOT-LOOP-life-create-99aa00ff11ee.json")
	pod.Reproduced, pod.Attempts, pod.Seed = 3, 3, 4711
	r := &Report{
		Version: Version, Subject: "viewer-operator", Command: "koboshi check --seed 42 --budget 5m", Seed: 42,
		Settings: []string{"ignore (2)", "profile full"}, SettingsFile: "koboshi.yaml",
		Started: time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC), Seconds: 190,
		Runs: 214, References: 6, Confirmations: 16,
		Findings: []judge.Finding{divergence, loop, pod},
		Scenarios: []Scenario{
			{Name: "life", Steps: 5, Writes: 23, Seconds: 0.9, Kind: "Viewer.apps.example.com", Masked: []string{"Viewer.apps.example.com status.lastSeen", "Secret data.token"},
				Unseen: []string{"data.token of Secret default/viewer-a-ca"}},
			{Name: "scale", Steps: 3, Writes: 12, Seconds: 0.6, File: "check/scale.yaml", Masked: []string{"Secret data.token"}},
		},
		Tried: []Tried{
			{Scenario: "life", Kind: fault.KillAfter, Planned: 50, Runs: 50, Clean: 47, Found: 2, Inconclusive: 1, Pruned: 4, Seconds: 60.25},
			{Scenario: "life", Kind: fault.Conflict, Planned: 40, Runs: 30, Clean: 27, NotApplied: 3, Seconds: 24},
			{Scenario: "scale", Kind: fault.KillAfter, Planned: 80, Runs: 80, Clean: 80, Seconds: 64.5},
			{Scenario: "scale", Kind: fault.DelayWatch, Planned: 40, Runs: 40, Clean: 39, Found: 1, Seconds: 41},
			{Scenario: "scale", Kind: fault.StaleRestart, Planned: 2, Runs: 2, NotApplied: 2, Seconds: 2},
		},
		Sources: Sources{
			Main:  "cmd/main.go:35",
			Kinds: map[string]string{"Viewer.apps.example.com": "api/v1/viewer_types.go:58"},
			RBAC:  "config/rbac/role.yaml",
		},
		Unused:  unused(),
		Remarks: []judge.Finding{notRestored()},
		Inputs:  []Input{{"Viewer.view.example.com", "spec.size was set to 0", "effect"}, {"Viewer.view.example.com", "spec.theme was removed", "unknown"}},
		Notes:   []string{"the controller elects a leader in every run"},
	}
	r.Inconclusive = []NotRun{{
		Scenario: "life", Fault: *kill, Why: "diverged was found in 1 of 4 runs",
		Suspicion: &judge.Finding{ID: "5e1d0b", Replay: "koboshi check replay .koboshi/findings/diverged-5e1d0b.json"},
	}}
	conflict := fault.Fault{Kind: fault.Conflict, Point: at("create", "patch", "deployments.apps", "default/viewer-a")}
	restart := fault.Fault{Kind: fault.StaleRestart, Point: fault.Point{Step: "scale", Resource: "pods"}}
	for range 3 {
		r.NotApplied = append(r.NotApplied, NotRun{Scenario: "life", Fault: conflict, Why: "the object was not there yet, so nobody else could write it"})
	}
	for range 2 {
		r.NotApplied = append(r.NotApplied, NotRun{Scenario: "scale", Fault: restart, Why: "the client lists pods without resourceVersion=0, so it requests the latest state"})
	}
	for range 10 {
		r.LeftOut = append(r.LeftOut, NotRun{Scenario: "life", Fault: conflict, Why: "the budget was used up"})
	}
	r.Sort()
	return r
}

// notRestored returns a remark about an object that the controller created once.
func notRestored() judge.Finding {
	f := &fault.Fault{Kind: fault.DeleteChild, Point: fault.Point{Step: "create"}, Target: "Secret/default/viewer-a-ca"}
	return judge.Finding{
		ID: "77aa0b", Verdict: judge.NotRestored, Scenario: "life", Step: "create", Fault: f, Seed: 42, Reproduced: 3, Attempts: 3,
		Sentence: f.String() + ": Secret default/viewer-a-ca stays deleted, even after a restart",
		Silence:  &judge.Silence{Add: "check:\n  interference:\n    skip:\n    - Secret\n", Wrong: "It is wrong if somebody may delete such an object."},
	}
}

// sampleTrace returns a trace with a write, a kill, watch events and healing.
func sampleTrace() []trace.Entry {
	pods := trace.Target{Version: "v1", Resource: "pods"}
	viewer := trace.Target{Group: "apps.example.com", Version: "v1", Resource: "viewers", Subresource: "status", Namespace: "default", Name: "viewer-a"}
	secret := trace.Target{Version: "v1", Resource: "secrets", Namespace: "default", Name: "viewer-a-ca"}
	pod := func(name string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"kind":"Pod","metadata":{"namespace":"default","name":%q}}`, name))
	}
	ms := time.Millisecond
	all := []trace.Entry{
		{At: 0, Instance: "controller-1", Process: &trace.Process{What: "started", PID: 17}},
		{At: 20 * ms, Step: &trace.Step{Name: "create", What: "started"}},
		{At: 30 * ms, Instance: "controller-1", Call: &trace.Call{ID: 1, Verb: "list", Target: pods, Code: 200}},
		{At: 31 * ms, Instance: "controller-1", Call: &trace.Call{ID: 2, Verb: "get", Target: secret, Code: 404, Reason: "NotFound"}},
		{At: 40 * ms, Instance: "controller-1", Watch: &trace.Watch{Call: 3, Target: pods, Type: "ADDED", Object: pod("a")}},
		{At: 41 * ms, Instance: "controller-1", Watch: &trace.Watch{Call: 3, Target: pods, Type: "ADDED", Object: pod("b")}},
		{At: 42 * ms, Instance: "controller-1", Watch: &trace.Watch{Call: 3, Target: pods, Type: "BOOKMARK"}},
		{At: 50 * ms, Instance: "controller-1", Call: &trace.Call{ID: 4, Verb: "create", Target: secret, Code: 201, Request: json.RawMessage(`{"kind":"Secret","data":{"key":"aHVudGVyMg=="}}`)}},
		{At: 50 * ms, Instance: "controller-1", Fault: &trace.Fault{What: "applied", Text: "kill after the answer"}},
		{At: 51 * ms, Instance: "controller-1", Process: &trace.Process{What: "killed", PID: 17}},
		{At: 60 * ms, Instance: "controller-2", Process: &trace.Process{What: "started", PID: 18}},
		{At: 90 * ms, Instance: "controller-2", Watch: &trace.Watch{Call: 9, Target: pods, Type: "MODIFIED", Object: pod("a"), Held: 30 * ms}},
		{At: 95 * ms, Instance: "controller-2", Call: &trace.Call{ID: 5, Verb: "patch", Target: viewer, Code: 200, Request: json.RawMessage(`{"status":{"phase":"Pending"}}`)}},
		{At: 400 * ms, Fault: &trace.Fault{What: "wait"}},
		{At: 900 * ms, Fault: &trace.Fault{What: "restart"}},
		{At: 1200 * ms, Step: &trace.Step{Name: "create", What: "settled"}},
	}
	for i := range all {
		all[i].Seq = int64(i + 1)
	}
	return all
}

// written returns the output of one of the report's Write methods.
func written(t *testing.T, write func(*bytes.Buffer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
