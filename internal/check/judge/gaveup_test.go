package judge

import (
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// restarter is a resource with a condition about the restart of a Deployment.
func restarter(ready, condition string) string {
	return `Widget.x default/w {"spec":{"n":1},"status":{"conditions":[{"type":"Ready","status":"` + ready + `"},` + condition + `]}}`
}

func TestAFailureThatAConditionReportsIsARemarkIfTheResourceIsOtherwiseRight(t *testing.T) {
	const (
		done   = `{"type":"Restart","status":"True","reason":"Triggered","message":"restarted"}`
		failed = `{"type":"Restart","status":"False","reason":"TriggerFailed","message":"restart failed: the server is busy"}`
		vague  = `{"type":"Restart","status":"False","reason":"Waiting","message":"not restarted"}`
	)
	deployment := func(at string) string {
		return `Deployment.apps default/d {"spec":{"template":{"metadata":{"annotations":{"restartedAt":"` + at + `"}}}}}`
	}
	begin := func(s *story, widget, at string) *story {
		return s.step("create").puts(driver, widget).puts(driver, deployment("")).puts(one, owned("child", "")).puts(one, deployment(at))
	}
	learnt := reference(t, scene(), func(s *story) { begin(s, restarter("True", done), "now") })
	refused := do(fault.Error500, "create", "ConfigMap/default/child")
	for name, tt := range map[string]struct {
		fault fault.Fault
		story func(s *story)
		want  Verdict
	}{
		"only the condition says so":   {refused, func(s *story) { begin(s, restarter("True", failed), "") }, GaveUp},
		"the resource is not ready":    {refused, func(s *story) { begin(s, restarter("False", failed), "") }, Diverged},
		"the condition names no error": {refused, func(s *story) { begin(s, restarter("True", vague), "") }, Diverged},
		"no condition says anything":   {refused, func(s *story) { begin(s, restarter("True", done), "") }, Diverged},
		"an object is missing as well": {refused, func(s *story) { begin(s, restarter("True", failed), "").deletes(one, "ConfigMap default/child") }, Diverged},
		"a child is different as well": {refused, func(s *story) {
			begin(s, restarter("True", failed), "").puts(one, owned("child", `"labels":{"a":"b"},`))
		}, Diverged},
		"another client has changed it": {do(fault.EditChild, "create", "Secret/default/other"), func(s *story) { begin(s, restarter("True", failed), "") }, Diverged},
		"the spec is different as well": {refused, func(s *story) {
			begin(s, strings.Replace(restarter("True", failed), `"n":1`, `"n":2`, 1), "")
		}, Diverged},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t)
			tt.story(s)
			s.healed(evidence.Never)
			got := Judge(learnt, s.after(tt.fault), &subject.Subject{Primary: []string{"Widget.x"}})
			if len(got) != 1 || got[0].Verdict != tt.want {
				t.Fatalf("%s, want %s: %+v", verdicts(got), tt.want, got)
			}
			if says := "the condition Restart of Widget.x default/w reports a failure"; got[0].Verdict == GaveUp && !strings.Contains(got[0].Sentence, says) {
				t.Errorf("the sentence is %q", got[0].Sentence)
			}
		})
	}
}

func TestAFailureThatAConditionReportsIsAFindingWithStrict(t *testing.T) {
	t.Parallel()
	if !GaveUp.IsRemark() || !(Finding{Verdict: GaveUp}).NeedsStrict() {
		t.Error("GAVE UP is no remark that --strict makes a finding")
	}
}
