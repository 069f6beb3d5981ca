package judge

import "github.com/koboshi-dev/koboshi/internal/check/state"

// Converted makes a finding about the conversion between two versions. The name identifies the versions:
// what is lost between them is one finding, whatever the fields are.
func Converted(name, outcome string, differences []state.Difference) Finding {
	f := Finding{Verdict: ConversionLossy, Scenario: name, Sentence: sentence(nil, 0, outcome), Differences: differences, Reproduced: 1, Attempts: 1}
	f.ID = f.identity("")
	return f
}
