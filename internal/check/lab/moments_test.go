package lab

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestOtherValuesAreOfTheSameType(t *testing.T) {
	for _, test := range []struct {
		value any
		want  []any
	}{
		{true, []any{false}},
		{int64(3), []any{int64(4), int64(2)}},
		{2.5, []any{3.5, 1.5}},
		{"10Mi", []any{"10Mix", "110Mi"}},
		{map[string]any{"b": true, "a": "1"}, []any{map[string]any{"a": "1x"}, map[string]any{"a": "11"}, map[string]any{"b": false}}},
		{map[string]any{"a": nil, "b": false}, []any{map[string]any{"b": true}}},
		{map[string]any{"a": map[string]any{"b": true}}, []any{map[string]any{"a": map[string]any{"b": false}}}},
		{map[string]any{"a": "hmac:0011", "b": true}, []any{map[string]any{"b": false}}},
	} {
		if diff := cmp.Diff(test.want, otherValues(test.value)); diff != "" {
			t.Errorf("%v: %s", test.value, diff)
		}
	}
}

func TestNobodyKnowsAnotherValueOfWhatIsHidden(t *testing.T) {
	for _, value := range []any{nil, "hmac:00112233", []any{"a"}, map[string]any{}, map[string]any{"token": "hmac:00112233"}} {
		if got := otherValues(value); len(got) > 0 {
			t.Errorf("%v: %v", value, got)
		}
	}
}

func TestReasonIsCutToWhatAPersonReads(t *testing.T) {
	if got := short("is not found"); got != "is not found" {
		t.Errorf("%q", got)
	}
	if got := short(strings.Repeat("é", 1000)); len(got) > 310 || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes, %q", len(got), got[len(got)-10:])
	}
}

func TestEachKindThatHappensAtRestCanBeDone(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Restart, fault.DeleteChild, fault.EditChild, fault.AddFinalizer, fault.StaleRestart, fault.LoseLease} {
		if momentary[kind] == nil {
			t.Errorf("nobody knows how to do %s", kind)
		}
	}
}

func TestEachErrorHasAnAnswerOfTheAPI(t *testing.T) {
	for kind, code := range map[fault.Kind]int32{
		fault.Error500: 500, fault.ErrorBurst: 500, fault.Error503: 503, fault.TooMany429: 429, fault.Timeout504: 504,
	} {
		a := answerFor(kind)
		if a.Answer == nil || a.Answer.Code != code || a.Answer.Kind != "Status" || a.Answer.Reason == "" {
			t.Errorf("%s is answered %+v", kind, a.Answer)
		}
		if retry := kind == fault.Error503 || kind == fault.TooMany429; retry != (a.RetryAfter > 0) {
			t.Errorf("%s says to retry after %d s", kind, a.RetryAfter)
		}
	}
}

func TestAllWatchesOfATypeAreMeantAndNoOthers(t *testing.T) {
	match := ofType(trace.Target{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "default", Name: "a"})
	if !match(trace.Target{Group: "apps", Version: "v1", Resource: "deployments"}) {
		t.Error("a watch of all namespaces is not meant")
	}
	if match(trace.Target{Version: "v1", Resource: "deployments"}) || match(trace.Target{Group: "apps", Resource: "deployments/status"}) {
		t.Error("another type is meant")
	}
}

func TestEnvironmentIsInOrder(t *testing.T) {
	if diff := cmp.Diff([]string{"A=1", "B=", "C=3"}, environ(map[string]string{"C": "3", "A": "1", "B": ""})); diff != "" {
		t.Error(diff)
	}
}
