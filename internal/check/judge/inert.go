package judge

import (
	"fmt"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// Inert returns the remark about a field whose change, and change back, had no effect.
func Inert(scenarioName, step string, object scenario.ObjectRef, kind, field, verb, value string) Finding {
	done := map[string]string{"remove": "was removed", "add": "was added with the value " + value}[verb]
	if done == "" {
		done = "was changed to " + value
	}
	f := Finding{
		Verdict: InertField, Scenario: scenarioName, Step: step,
		Sentence:    fmt.Sprintf("%s %s, and later changed back, but the controller did nothing but note the new generation", field, shorten(done, 80)),
		Differences: []state.Difference{{Object: kind + " " + object.Namespace + "/" + object.Name, Path: field}},
		Reproduced:  1, Attempts: 1,
	}
	f.ID = f.identity(kind + " " + field)
	return f
}
