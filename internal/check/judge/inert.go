package judge

import (
	"fmt"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// A Field is a field of a resource that was changed alone.
type Field struct {
	Scenario, Step string // of the change
	Object         scenario.ObjectRef
	Kind           string // "Kind.group"
	Path           string
	// Given describes the change in words, without secret values.
	Given string
}

// remark returns a remark about the field.
func (f Field) remark(verdict Verdict, sentence string) Finding {
	name := f.Kind + " " + f.Object.Name
	if f.Object.Namespace != "" {
		name = f.Kind + " " + f.Object.Namespace + "/" + f.Object.Name
	}
	return Finding{
		// The scenario depends on the seed, but the field does not.
		ID:      Finding{Verdict: verdict}.identity(f.Kind + " " + f.Path),
		Verdict: verdict, Scenario: f.Scenario, Step: f.Step,
		Sentence:    sentence,
		Differences: []state.Difference{{Object: name, Path: f.Path}},
		Reproduced:  2, Attempts: 2,
	}
}

// Inert returns the remark about a field whose change, and change back, had no effect.
func Inert(f Field, once bool) Finding {
	sentence := f.Path + " of " + f.Kind + " was changed and changed back; each time, nothing else changed in the cluster"
	if once {
		sentence = "only the first value of " + f.Path + " of " + f.Kind + " had an effect; when it got another value, nothing else changed in the cluster"
	}
	return f.remark(InertField, sentence)
}

// Unready returns the remark about a field with a value with which a resource does not become ready, for
// the given reason.
func Unready(f Field, why string) Finding {
	out := f.remark(NeverReady, fmt.Sprintf("%s of %s, which was ready before; now %s, and no part of the status says what is wrong", f.Given, f.Kind, why))
	out.Input = f.Given
	return out
}

// Stalled returns the remark about a change of a field that kept the controller from its work on another
// resource for the given time.
func Stalled(f Field, quiet time.Duration) Finding {
	out := f.remark(BlastRadius, fmt.Sprintf("%s of one %s; after that, the controller ignored a change of another one, to which it had reacted before, for %s", f.Given, f.Kind, quiet.Round(time.Second)))
	out.Input = f.Given
	return out
}
