package inputs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/rejection"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// readiness lists the types of conditions that say whether a resource can be used, the most common first.
var readiness = []string{"Ready", "Available"}

// atRest matches the names of fields with which a person stops a workload on purpose.
var atRest = regexp.MustCompile(`(?i)(paused?|suspend(ed)?|stop(ped)?|halt(ed)?|shutdown|hibernat\w*|disabled?|enabled?|maintenance|state|mode)$`)

// unready describes the condition of an object that was ready before a change, and is not ready after it,
// or returns "". If the status says what is wrong, or the change stops the workload, a person knows why.
func (j *judging) unready(trial *scenario.Trial, first, last *evidence.Step) string {
	name := trial.Field[strings.LastIndexByte(trial.Field, '.')+1:]
	if string(trial.Value) == "0" || atRest.MatchString(name) {
		return ""
	}
	before, after := j.object(first.Began), j.object(last.Rested)
	if before == nil || after == nil || j.waits(last.Rested) {
		return ""
	}
	for _, kind := range readiness {
		was, is := conditionOf(before, kind), conditionOf(after, kind)
		switch {
		case was == nil || was["status"] != "True":
			continue
		case rejection.Complains(after):
			return ""
		case is == nil:
			return "the condition " + kind + " is gone"
		case is["status"] == "True":
			return ""
		}
		return fmt.Sprintf("the condition %s is %v with the reason %v", kind, is["status"], is["reason"])
	}
	return ""
}

// waits reports whether an object waits for something that the cluster does not have, such as a node with a
// label, or an address from outside. The new value may be right for another cluster.
func (j *judging) waits(revision int64) bool {
	for ref, object := range j.run.History.Living(revision) {
		spec, _ := object["spec"].(map[string]any)
		status, _ := object["status"].(map[string]any)
		balancer, _ := status["loadBalancer"].(map[string]any)
		switch ref.String() {
		case "Pod", "PersistentVolumeClaim":
			if status["phase"] == "Pending" {
				return true
			}
		case "Service":
			if spec["type"] == "LoadBalancer" && balancer["ingress"] == nil {
				return true
			}
		case "Ingress.networking.k8s.io":
			if balancer["ingress"] == nil {
				return true
			}
		}
	}
	return false
}

// object returns the object of the trials at a revision, or nil.
func (j *judging) object(revision int64) state.Object {
	for ref, object := range j.run.History.Living(revision) {
		if j.isObject(ref) {
			return object
		}
	}
	return nil
}

// conditionOf returns the condition of a type, or nil.
func conditionOf(object state.Object, kind string) map[string]any {
	status, _ := object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	i := slices.IndexFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == kind
	})
	if i < 0 {
		return nil
	}
	condition, _ := conditions[i].(map[string]any)
	return condition
}

// complains reports whether the status of the object names a problem after a step, but not before it.
func (j *judging) complains(step *evidence.Step) bool {
	before, after := j.object(step.Began), j.object(step.Rested)
	return after != nil && rejection.Complains(after) && (before == nil || !rejection.Complains(before))
}

// unclear are the outcomes of a trial that show nothing about the trials beside it.
var unclear = []Outcome{Unknown, Refused, Crashed, Restless}

// Stalls reports whether trials made by Trials.Beside show that a change keeps the controller from its work
// on another resource: what both changes of the twin did before, the third one does not do. If the trials
// show nothing, clear is false.
func Stalls(done []Tried) (stalls, clear bool) {
	usual := func(sign string) bool {
		return slices.Contains(done[0].Signs, sign) && slices.Contains(done[1].Signs, sign)
	}
	if len(done) != 3 || slices.ContainsFunc(done, func(d Tried) bool { return slices.Contains(unclear, d.Outcome) }) ||
		!slices.ContainsFunc(done[0].Signs, usual) {
		return false, false
	}
	return !slices.ContainsFunc(done[2].Signs, usual), true
}
