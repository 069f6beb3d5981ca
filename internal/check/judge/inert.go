package judge

import (
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// Inert returns the remark about a field whose change, and change back, had no effect. It does not
// contain the value, which may be secret.
func Inert(scenarioName, step string, object scenario.ObjectRef, kind, field string, once bool) Finding {
	name := kind + " " + object.Name
	if object.Namespace != "" {
		name = kind + " " + object.Namespace + "/" + object.Name
	}
	sentence := field + " of " + kind + " was changed and changed back; each time, nothing else changed in the cluster"
	if once {
		sentence = "only the first value of " + field + " of " + kind + " had an effect; when it got another value, nothing else changed in the cluster"
	}
	return Finding{
		// The scenario depends on the seed, but the field does not.
		ID:      Finding{Verdict: InertField}.identity(kind + " " + field),
		Verdict: InertField, Scenario: scenarioName, Step: step,
		Sentence:    sentence,
		Differences: []state.Difference{{Object: name, Path: field}},
		Reproduced:  2, Attempts: 2,
	}
}
