package check

import (
	"fmt"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// A finding that compares two rests of a run without a fault is wrong if the first rest was only a
// pause. So the rests that such findings compare are watched before all others. If one of the two
// rests was not watched, the finding is not reported.

// comparedRests returns the keys of the rests on which findings without a fault depend.
func (o *outcome) comparedRests() map[string]bool {
	keys, compared := o.keys(), map[string]bool{}
	for _, l := range o.lessons {
		for _, f := range l.Findings {
			for _, rest := range restsBehind(f, l.Scenario) {
				compared[keys[rest]] = true
			}
		}
	}
	return compared
}

// restsBehind returns the rests that a finding compares, or nil if it compares none.
func restsBehind(f judge.Finding, sc *scenario.Scenario) []Rest {
	if f.Verdict != judge.PathDependent || f.Fault != nil {
		return nil
	}
	for _, step := range sc.Steps {
		if step.Name == f.Step && step.SameAs != "" {
			return []Rest{{sc.Name, step.SameAs}, {sc.Name, step.Name}}
		}
	}
	return nil
}

// keys returns the key of each rest. Two rests that are reached by the same steps have the
// same key.
func (o *outcome) keys() map[Rest]string {
	keys := map[Rest]string{}
	for name, l := range o.lessons {
		for key, step := range paths(l.Scenario) {
			keys[Rest{name, step.Name}] = key
		}
	}
	return keys
}

// inFront moves the rests with the given keys to the front, and returns their number.
func inFront(rests []Rest, keys map[Rest]string, first map[string]bool) ([]Rest, int) {
	var front, others []Rest
	for _, rest := range rests {
		if first[keys[rest]] {
			front = append(front, rest)
		} else {
			others = append(others, rest)
		}
	}
	return append(front, others...), len(front)
}

// dropUnwatched removes findings that compare rests if one of the rests was not watched,
// for example because the check ended earlier.
func (o *outcome) dropUnwatched() {
	if o.Horizon <= 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	keys, watched := o.keys(), map[string]bool{}
	for rest := range o.result.Watched {
		watched[keys[rest]] = true
	}
	r := o.result.Report
	r.Findings = slices.DeleteFunc(r.Findings, func(f judge.Finding) bool {
		l := o.lessons[f.Scenario]
		if l == nil || !slices.ContainsFunc(restsBehind(f, l.Scenario), func(rest Rest) bool { return !watched[keys[rest]] }) {
			return false
		}
		o.noted(fmt.Sprintf("scenario %s, step %s: %s; this is not a finding, because at least one of the two rests was not watched, "+
			"and may have been only a pause (use a larger --budget)", f.Scenario, f.Step, f.Sentence))
		return true
	})
}
