package inject

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func TestHiddenValuesHaveNoOtherValue(t *testing.T) {
	for _, value := range []any{nil, "hmac:00112233", []any{"a"}, map[string]any{}, map[string]any{"token": "hmac:00112233"}} {
		if got := otherValues(value); len(got) > 0 {
			t.Errorf("%v: %v", value, got)
		}
	}
}

func TestLongReasonIsCut(t *testing.T) {
	if got := short("is not found"); got != "is not found" {
		t.Errorf("%q", got)
	}
	if got := short(strings.Repeat("é", 1000)); len(got) > 310 || !strings.HasSuffix(got, "é…") {
		t.Errorf("%d bytes, %q", len(got), got[len(got)-10:])
	}
}

func TestOfTypeMatchesAllWatchesOfOneType(t *testing.T) {
	match := ofType(trace.Target{Group: "apps", Version: "v1", Resource: "deployments", Namespace: "default", Name: "a"})
	if !match(trace.Target{Group: "apps", Version: "v1", Resource: "deployments"}) {
		t.Error("a watch of all namespaces does not match")
	}
	if match(trace.Target{Version: "v1", Resource: "deployments"}) || match(trace.Target{Group: "apps", Resource: "deployments/status"}) {
		t.Error("another type matches")
	}
}
