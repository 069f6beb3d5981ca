package judge

import (
	"regexp"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/exposure"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// exposed finds values of Secrets that the controller makes readable for clients that may not read
// Secrets, and that it does not make readable without the fault.
func exposed(in *input) []Finding {
	for _, e := range in.exposures() {
		if !slices.Contains(in.ref.Exposed, e.what) {
			return []Finding{in.exposed(e)}
		}
	}
	return nil
}

// exposedAlone finds values that the controller makes readable in every run.
func exposedAlone(inputs []*input) (findings []Finding) {
	if len(inputs) == 0 {
		return nil
	}
	for _, e := range inputs[0].exposures() {
		always := true
		for _, other := range inputs[1:] {
			always = always && slices.ContainsFunc(other.exposures(), func(o revealed) bool { return o.what == e.what })
		}
		if always && !slices.ContainsFunc(findings, func(f Finding) bool { return e.shownBy(f, inputs[0]) }) {
			findings = append(findings, inputs[0].exposed(e))
		}
	}
	return findings
}

// revealed is a place at which the controller made a value readable, and its description, which is
// the same in every run.
type revealed struct {
	exposure.Place
	value, what string
	author      *trace.Entry // nil for the output
}

// shownBy reports whether a finding already shows the place, for another Secret with the same value.
func (e revealed) shownBy(f Finding, in *input) bool {
	if e.author == nil {
		return f.Verdict == SecretLeaked && f.Differences[0].Path == LogPath && f.Detail == excerpt(e.Line)
	}
	return f.Verdict == SecretLeaked && f.Differences[0].Path == e.Path && f.Differences[0].Object == in.labels.Of(e.Ref)
}

// indexes matches the numbers of list items, which depend on the order.
var indexes = regexp.MustCompile(`\[\d+\]`)

// exposures returns the places that the controller is to blame for, each only once. A value that
// another client wrote to a readable place before the controller did is not secret. The copies that
// other controllers make of what the controller wrote, such as Pods of a Deployment, do not count.
func (in *input) exposures() (found []revealed) {
	if len(in.run.Exposed) == 0 {
		return nil
	}
	public, leaked := map[string]bool{}, map[string]bool{}
	for _, p := range in.run.Exposed {
		value := "the value of " + p.Key + " of " + in.labels.Of(p.Secret)
		e := revealed{Place: p, value: value, what: value + " in the log"}
		if p.Line == "" {
			e.author, e.what = in.writeOf(p.Revision), value+" in "+indexes.ReplaceAllString(p.Path, "[]")+" of "+in.labels.Of(p.Ref)
			if e.author == nil {
				public[value] = public[value] || !leaked[value]
				continue
			}
			if !p.Open || in.ref.Mask.Accepts(p.Ref, in.labels.Of(p.Ref), p.Path) {
				continue
			}
		}
		if public[value] {
			continue
		}
		leaked[value] = true
		if !slices.ContainsFunc(found, func(other revealed) bool { return other.what == e.what }) {
			found = append(found, e)
		}
	}
	return found
}

// isWrite reports whether an entry is a write of the controller, even if it is bookkeeping.
func isWrite(e *trace.Entry) bool {
	return e.Call != nil && e.Instance != "" && request.IsWrite(e.Call)
}

// exposed makes the finding for a place.
func (in *input) exposed(e revealed) Finding {
	if e.author == nil {
		f := in.finding(SecretLeaked, in.faultyStep(), "the controller writes "+e.value+" to its log",
			[]state.Difference{{Object: in.labels.Of(e.Secret), Path: LogPath, Got: `"` + e.value + `"`}})
		f.Detail = excerpt(e.Line)
		return f
	}
	object := in.labels.Of(e.Ref)
	f := in.finding(SecretLeaked, in.stepAt(e.Revision), "the controller writes "+e.value+" to "+e.Path+" of "+object,
		[]state.Difference{{Object: object, Path: e.Path, Got: `"` + e.value + `"`}})
	f.LastAction = in.request(e.author.Call)
	return f
}

// LogPath stands for the output of the controller in the path of a difference.
const LogPath = "(log)"
