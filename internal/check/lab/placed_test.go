package lab

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

func TestAStepWhoseTimeIsOverIsNamed(t *testing.T) {
	r := &run{scenario: &scenario.Scenario{Name: "life"}, unrested: rest.Watches, current: "create"}
	late := fmt.Errorf("waiting: %w", context.DeadlineExceeded)
	got := r.placed(late)
	for _, want := range []string{"scenario life, step create", string(rest.Watches), "rest.timeout"} {
		if !strings.Contains(got.Error(), want) {
			t.Errorf("%v does not say %q", got, want)
		}
	}
	other := errors.New("another reason")
	step := &StepError{Scenario: "life", Step: "create", Err: late}
	if r.placed(other) != other || r.placed(step) != error(step) || r.placed(nil) != nil {
		t.Error("an error that needs no place is changed")
	}
}
