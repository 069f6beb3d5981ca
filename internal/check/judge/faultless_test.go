package judge

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func TestAnEmptyValueIsAsGoodAsNone(t *testing.T) {
	for d, want := range map[state.Difference]bool{
		{Path: "data[inclusions]", Want: "", Got: `""`}:  true,
		{Path: "spec.podSelector", Want: "{}", Got: ""}:  false,
		{Path: "status.members", Want: "[]", Got: ""}:    true,
		{Path: "data[inclusions]", Want: "", Got: `"a"`}: false,
		{Path: "spec.replicas", Want: "", Got: "0"}:      false,
		{Path: "", Want: "", Got: "{}"}:                  false, // the object exists or not
	} {
		if got := hollow(d); got != want {
			t.Errorf("%+v: %t", d, got)
		}
	}
}
