package inputs

import (
	"regexp"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

const (
	// fewestTrials is the number of trials from which it can be learnt what a controller does in each
	// reconcile. The control steps do not show it if a predicate of the controller ignores changes of
	// annotations.
	fewestTrials = 8
	// usual is the share of the trials, in percent, in which such a sign occurs.
	usual = 80
)

// listen returns the signs that prove nothing. They occur in a control step, or they are fields that
// change in almost all trials and do not depend on the spec: if the spec has its old value again, they
// have not. An example is a counter of reconciles.
func (j *judging) listen() map[sign]bool {
	noise := map[sign]bool{}
	for _, name := range j.Controls {
		if step := j.steps[name]; step != nil {
			for _, s := range j.signs(step) {
				noise[s] = true
			}
		}
	}
	trials, occurs, drifts := 0, map[sign]int{}, map[sign]int{}
	for i := range j.Trials.Trials {
		change, undo := j.steps[j.Trials.Trials[i].Step], j.steps[j.Trials.Trials[i].Undo]
		if change == nil || undo == nil || change.Refused != "" || undo.Refused != "" || undo.Rested == 0 {
			continue
		}
		trials++
		drift := j.drift(change, undo)
		for s := range j.both(change, undo) {
			occurs[s]++
			if drift[s] {
				drifts[s]++
			}
		}
	}
	for s, n := range occurs {
		if trials >= fewestTrials && n*100 >= trials*usual && drifts[s]*2 >= n {
			noise[s] = true
		}
	}
	return noise
}

// both returns the signs that occur in the change or in its return.
func (j *judging) both(change, undo *evidence.Step) map[sign]bool {
	all := map[sign]bool{}
	for _, step := range []*evidence.Step{change, undo} {
		for _, s := range j.signs(step) {
			all[s] = true
		}
	}
	return all
}

// drift returns the fields that are not as they were before the change.
func (j *judging) drift(change, undo *evidence.Step) map[sign]bool {
	all := map[sign]bool{}
	before, after := j.run.History.Living(change.Began), j.run.History.Living(undo.Rested)
	for _, c := range j.run.History.Between(change.Began, undo.Rested) {
		for _, path := range changed(map[string]any(before[c.Ref]), map[string]any(after[c.Ref])) {
			all[sign{nameOf(c.Ref), path}] = true
		}
	}
	return all
}

// problem matches lines about a problem.
var problem = regexp.MustCompile(`(?i)\b(?:error|err|fail|failed|failure|invalid|warn|warning|denied|reject|rejected|unsupported|not supported|forbidden|ignor\w*|skip\w*|cannot|could not|unable|must)\b|^[EW]\d{4} `)

// digits matches what differs between two lines about the same problem: times and numbers.
var digits = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|\d+`)

func problems(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if problem.MatchString(line) {
			lines = append(lines, digits.ReplaceAllString(line, "0"))
		}
	}
	return lines
}

// overhear returns the lines about problems that the controller prints in the control steps, and when
// the object is created.
func (j *judging) overhear() map[string]bool {
	heard := map[string]bool{}
	for _, name := range append([]string{scenario.CreateStep}, j.Controls...) {
		if step := j.steps[name]; step != nil {
			for _, line := range problems(step.Said) {
				heard[line] = true
			}
		}
	}
	return heard
}

// tells reports whether the controller printed a problem, or the new value. A controller that rejects a
// value may say so only in its log.
func (j *judging) tells(trial *scenario.Trial, step *evidence.Step) bool {
	for _, line := range problems(step.Said) {
		if !j.heard[line] {
			return true
		}
	}
	const shortest = 4 // a shorter value occurs by chance
	value := strings.Trim(string(trial.Value), `"`)
	return len(value) >= shortest && strings.Contains(step.Said, value)
}
