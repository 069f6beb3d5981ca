package lab

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestOtherValueIsOfTheSameType(t *testing.T) {
	for _, test := range []struct{ value, want any }{
		{true, false},
		{int64(3), int64(4)},
		{2.5, 3.5},
		{"small", "smallx"},
		{map[string]any{"b": "2", "a": "1"}, map[string]any{"a": "1x"}},
		{map[string]any{"a": nil, "b": int64(1)}, map[string]any{"b": int64(2)}},
		{map[string]any{"a": map[string]any{"b": true}}, map[string]any{"a": map[string]any{"b": false}}},
		{map[string]any{"a": "hmac:0011", "b": "x"}, map[string]any{"b": "xx"}},
	} {
		got, err := otherValue(test.value)
		if err != nil {
			t.Errorf("%v: %v", test.value, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%v: %s", test.value, diff)
		}
	}
}

func TestNobodyKnowsAnotherValueOfWhatIsHidden(t *testing.T) {
	for _, value := range []any{nil, "hmac:00112233", []any{"a"}, map[string]any{}, map[string]any{"token": "hmac:00112233"}} {
		if got, err := otherValue(value); !errors.Is(err, errNoOther) {
			t.Errorf("%v: %v, %v", value, got, err)
		}
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
