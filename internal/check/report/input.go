package report

import "fmt"

// Input is a change of one field, or another name, with what the controller did.
type Input struct {
	// Kind is the kind of the object as "Kind.group", and Given describes the input in words.
	Kind  string `json:"kind"`
	Given string `json:"given"`
	// Outcome is an outcome of package inputs, such as "effect", or "unknown" if the input was not tried.
	Outcome string `json:"outcome"`
}

// inputs lists all inputs in a verbose report.
func (t *text) inputs() {
	if len(t.report.Inputs) == 0 || !t.verbose {
		return
	}
	t.heading("Inputs")
	for _, i := range t.report.Inputs {
		outcome := i.Outcome
		if outcome == "unknown" {
			outcome = "not tried"
		}
		t.para(none, "  - ", fmt.Sprintf("%s: %s (%s)", outcome, inline(i.Given), inline(i.Kind)))
	}
}
