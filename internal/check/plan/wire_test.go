package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// In the trace of a running proxy, bodies have their wire format; in a trace read from a
// file, bodies are JSON.
func TestAPlanIsTheSameFromTheWireAndFromAFile(t *testing.T) {
	file, wire := life().input(), life().input()
	for _, e := range wire.Reference.Entries {
		if e.Call != nil {
			e.Call.RawRequest, e.Call.Request = trace.NewBody(e.Call.Request, "application/json", ""), nil
			e.Call.RawResponse, e.Call.Response = trace.NewBody(e.Call.Response, "application/json", ""), nil
		}
	}
	change := func(c *trace.Call) string {
		body, err := c.RequestObject()
		if err != nil || body == nil {
			return ""
		}
		return string(encode(body))
	}
	file.Change, wire.Change = change, change
	want := Make(file)
	if diff := cmp.Diff(want, Make(wire)); diff != "" {
		t.Errorf("(-file +wire):\n%s", diff)
	}
	if len(want.Faults) < 50 {
		t.Errorf("%d faults are planned: the bodies were not read", len(want.Faults))
	}
}
