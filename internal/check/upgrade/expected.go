package upgrade

import (
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// acceptable lists the verdicts that a project can expect of an upgrade. What is wedged, or crashes, is
// never what a project wants.
var acceptable = []judge.Verdict{judge.UpgradeChurn, judge.NotAsFresh, judge.DataLost, judge.DowngradeBroken}

// sort separates what the project expects from the findings.
func (r *run) sort(findings []judge.Finding) Result {
	out := Result{Notes: r.notes}
	expected := &state.Mask{Configured: r.Expected}
	for _, f := range findings {
		if r.accepts(expected, f) {
			out.Accepted = append(out.Accepted, f)
		} else {
			out.Findings = append(out.Findings, f)
		}
	}
	out.Matched = expected.Matched()
	return out
}

// accepts reports whether the project expects every place of a finding.
func (r *run) accepts(expected *state.Mask, f judge.Finding) bool {
	if len(r.Expected) == 0 || len(f.Differences) == 0 || !slices.Contains(acceptable, f.Verdict) {
		return false
	}
	all := true
	for _, d := range f.Differences {
		ref, known := r.refOf(d.Object)
		all = all && known && expected.Accepts(ref, d.Object, d.Path)
	}
	return all
}

// refOf returns an object with a canonical name. Several objects may have the name.
func (r *run) refOf(object string) (state.Ref, bool) {
	for _, c := range r.Run.History.Changes {
		if r.labels.Of(c.Ref) == object {
			return c.Ref, true
		}
	}
	return state.Ref{}, false
}
