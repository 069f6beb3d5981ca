package report

import (
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

// gravity is how a verdict is shown: its colour, and its level in SARIF.
type gravity string

const (
	grave  gravity = "error"
	middle gravity = "warning"
	slight gravity = "note"
)

// verdict is what there is to say about all findings of one verdict.
type verdict struct {
	judge.Verdict
	gravity gravity
	// meaning is one sentence, cause what is usually wrong in the code.
	meaning, cause string
}

// verdicts are in order of seriousness.
var verdicts = []verdict{
	{judge.Diverged, grave,
		"The cluster did not come to the state that it comes to without the fault, not even after a restart of the controller and a change of its resource.",
		"A step is skipped because an earlier one seems to say that all is done, or progress was kept in memory only. Decide each step from what is in the cluster, not from what was done before."},
	{judge.SplitBrain, grave,
		"A process that no longer held the Lease wrote to the cluster.",
		"A controller runs under the context of the process and not under that of the leadership. Stop everything that writes when the Lease is lost, or end the process."},
	{judge.DestructiveBlip, grave,
		"The end is right, but on the way something was deleted or created that is left alone without the fault.",
		"An old or failed read was taken for the absence of an object. Give deletions a precondition of UID and resourceVersion, and do not act on an error as on \"not found\"."},
	{judge.Crashed, grave,
		"The controller panicked or ended by itself.",
		"A value that is usually there was not, or an error that passes was taken for one that stays."},
	{judge.Leak, grave,
		"After the deletion something was left in the cluster or outside of it.",
		"The finalizer is set after the first thing is made, or taken off before the last is gone, or an owner reference is missing."},
	{judge.DivergedUntilRestart, middle,
		"The state became right only after the controller listed anew, was restarted, or its resource was touched.",
		"An event was needed and did not come, or memory and cluster do not agree any more. Watch everything that the decision depends on, and return an error when work is left."},
	{judge.PathDependent, middle,
		"The same declaration led to another state on another way to it.",
		"Something that was set is not taken back when the declaration no longer wants it."},
	{judge.HotLoop, middle,
		"The controller kept writing although nothing was left to do.",
		"It compares what it wants with what the server made of it: defaults, empty lists, units, order. Or its own write of the status wakes it up. Compare what has a meaning, and write only if that differs."},
	{judge.RBACMissing, middle,
		"The server refused a request of the controller, because its role does not allow it.",
		"A rule is missing in the role that is shipped. With kubebuilder, add a marker //+kubebuilder:rbac and make the manifests anew."},
	{judge.RBACUnused, slight,
		"The role allows something that the controller never asked for in this check.",
		"Take the rule away if no situation needs it. The scenarios may not have led to the one that does."},
}

// about also knows verdicts that it does not know, those of a later version.
func about(v judge.Verdict) verdict {
	if i := rank(v); i < len(verdicts) {
		return verdicts[i]
	}
	return verdict{Verdict: v, gravity: middle, meaning: "A verdict that this version of koboshi does not know."}
}

func rank(v judge.Verdict) int {
	i := slices.IndexFunc(verdicts, func(known verdict) bool { return known.Verdict == v })
	if i < 0 {
		return len(verdicts)
	}
	return i
}
