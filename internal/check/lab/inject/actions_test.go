package inject

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
)

func TestEachKindOfFaultHasOneAction(t *testing.T) {
	known := map[fault.Kind]bool{}
	for _, kind := range fault.Kinds() {
		known[kind] = true
		a := actions[kind]
		// Watch events may be held back from a certain request on, or for a complete step.
		request, begin, rest := a.request != nil, a.begin != nil, a.rest != nil
		switch where := kind.Where(); where {
		case fault.AtWrite, fault.AtRequest:
			if !request || begin || rest {
				t.Errorf("%s, %s: request %t, begin %t, rest %t", kind, where, request, begin, rest)
			}
		case fault.AtWatch, fault.InStep:
			if !begin || rest {
				t.Errorf("%s, %s: begin %t, rest %t", kind, where, begin, rest)
			}
		case fault.AtRest:
			if !rest || request || begin {
				t.Errorf("%s, %s: request %t, begin %t, rest %t", kind, where, request, begin, rest)
			}
		default:
			t.Errorf("%s is applied %q, for which there is no action", kind, where)
		}
	}
	for kind := range actions {
		if !known[kind] {
			t.Errorf("%s has an action but is no kind of fault", kind)
		}
	}
}

func TestActionThatAnswersHasAnAnswer(t *testing.T) {
	for _, kind := range fault.Kinds() {
		if kind.Where() != fault.AtRequest {
			continue
		}
		if _, ok := kind.Answer(); !ok {
			t.Errorf("%s has no answer", kind)
		}
	}
}

func TestEachErrorHasAnAnswerOfTheAPI(t *testing.T) {
	for kind, code := range map[fault.Kind]int32{
		fault.Error500: 500, fault.ErrorBurst: 500, fault.Error503: 503, fault.TooMany429: 429, fault.Timeout504: 504,
	} {
		a := answerFor(kind)
		if a.Answer == nil || a.Answer.Code != code || a.Answer.Kind != "Status" || a.Answer.Reason == "" {
			t.Errorf("the answer to %s is %+v", kind, a.Answer)
		}
		if retry := kind == fault.Error503 || kind == fault.TooMany429; retry != (a.RetryAfter > 0) {
			t.Errorf("the answer to %s asks to retry after %d s", kind, a.RetryAfter)
		}
	}
}

func TestReasonWhyAFaultWasNotAppliedNamesItsPoint(t *testing.T) {
	for want, point := range map[string]fault.Point{
		"the controller did not send PATCH pods d/a in step s in this run":                   {Step: "s", Verb: "patch", Resource: "pods", Object: "d/a", Occurrence: 1},
		"the run ended before it reached the point of the fault (at rest after step create)": {Step: "create"},
	} {
		if got := New(Config{Fault: fault.Fault{Point: point}}).Outcome().NotApplied; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
