package judge

import (
	"errors"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
)

func TestRunsThatDifferInAFinalizerAreReportedAsDifferent(t *testing.T) {
	var runs []*evidence.Run
	for i := range 3 {
		s := tell(t)
		s.step("create").puts(driver, `Doll.toys default/a {"spec":{"x":1}}`)
		if i > 0 {
			s.puts("a", `Doll.toys default/a {"spec":{"x":1},"metadata":{"finalizers":["toys/clean"]}}`)
		}
		runs = append(runs, s.end())
	}
	var different *DifferentError
	if _, err := NewReference(scene(), runs); !errors.As(err, &different) {
		t.Errorf("the error is %v", err)
	}
}
