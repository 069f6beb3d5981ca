package judge

import (
	"fmt"

	"github.com/koboshi-dev/koboshi/internal/check/rejection"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
)

// refusedLate finds writes that the API server keeps rejecting as invalid in every run, although the
// schema of the custom resource admitted what led to them, and no status says so. A user sees only
// that nothing happens.
func refusedLate(inputs []*input) []Finding {
	if len(inputs) == 0 {
		return nil
	}
	in := inputs[0]
	for i := range in.run.Steps {
		step := &in.run.Steps[i]
		for _, r := range rejection.In(in.run, step) {
			told := rejection.Tell(in.run, step, in.subject.Primary)
			if told.InStatus || !rejectedInAll(inputs, step.Name, r.Object()) {
				continue
			}
			where := "no status says so"
			if told.InEvents {
				where = "only Events say so, and no status"
			}
			f := in.finding(RefusedLate, step.Name, fmt.Sprintf("the API server keeps rejecting %s %s, and %s", request.Method(r.Last.Verb), r.Object(), where),
				[]state.Difference{{Object: r.Object(), Path: r.Field()}})
			f.Detail = r.Last.Message
			f.Reproduced, f.Attempts = len(inputs), len(inputs)
			return []Finding{f}
		}
	}
	return nil
}

// rejectedInAll reports whether the writes of an object are rejected in this step of every run.
func rejectedInAll(inputs []*input, step, object string) bool {
	for _, in := range inputs {
		i := in.indexOf(step)
		found := false
		if i >= 0 {
			for _, r := range rejection.In(in.run, &in.run.Steps[i]) {
				found = found || r.Object() == object
			}
		}
		if !found {
			return false
		}
	}
	return true
}
