package judge

import (
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

var (
	// failing matches the reason or the message of a condition that reports a failure.
	failing = regexp.MustCompile(`(?i)fail|error`)
	// summary matches the types of conditions that describe a resource as a whole.
	summary = regexp.MustCompile(`(?i)^(ready|available|healthy|succeeded|complete|completed|progressing|degraded|reconciled|synced|established)$`)
)

// reportedFailure returns the condition with which a resource reports that an action of its controller failed, or "".
//
// A controller may treat an action as optional, such as a restart of the programs that use a Secret: it tries
// once, and a condition reports whether that failed. So no bug is proven if nothing else in the resource is wrong,
// no object is missing or left over, and every other object that differs has no owner. An object with an owner
// was made for a resource, so it is part of the declared state.
func (in *input) reportedFailure(differences []state.Difference, revision int64) (condition string) {
	if in.run.Fault == nil || in.run.Fault.Kind.Meddles() {
		return ""
	}
	owned := map[string]bool{}
	for ref, object := range in.run.History.Living(revision) {
		owned[in.labels.Of(ref)] = len(object.Owners()) > 0
	}
	failed := map[string]bool{} // the conditions that differ, and whether they report a failure
	for _, d := range differences {
		kind, _, _ := strings.Cut(d.Object, " ")
		switch {
		case d.Path == "" || owned[d.Object]:
			return ""
		case !slices.Contains(in.subject.Primary, kind):
			continue
		}
		name := conditionIn(d.Path)
		if name == "" || summary.MatchString(name) {
			return ""
		}
		about := "the condition " + name + " of " + d.Object
		failed[about] = failed[about] || failing.MatchString(d.Got) && !failing.MatchString(d.Want)
	}
	for about, fails := range failed {
		if !fails {
			return ""
		}
		if condition == "" || about < condition {
			condition = about
		}
	}
	return condition
}

// conditionIn returns the type of the condition in which a field of a status lies, or "".
func conditionIn(path string) string {
	rest, found := strings.CutPrefix(path, "status.conditions[")
	name, _, closed := strings.Cut(rest, "]")
	if !found || !closed {
		return ""
	}
	return name
}
