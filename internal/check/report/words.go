package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

// span formats a duration for human readers: "3 min 10 s".
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	d = d.Round(time.Second)
	hours, minutes, seconds := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case hours > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes)
	case seconds == 0:
		return fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf("%d min %d s", minutes, seconds)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// outcome summarizes the report in one line.
func (r *Report) outcome() string {
	found := len(r.Findings)
	said := "clean: "
	switch {
	case r.Idle != "":
		said = "the controller did none of its work: "
	case found > 0:
		said = noun.Count(found, "finding") + " in "
	case r.Stopped != "" || r.doubted():
		said = "no result: "
	case r.Runs <= r.References:
		said = "no fault was tried: "
	case !r.conclusive():
		said = "no fault gave a result: "
	case len(r.blind()) > 0:
		said = "not clean, because the controller's own objects could not be compared: "
	}
	said += fmt.Sprintf("%s (%s), seed %d", noun.Count(r.Runs, "run"), span(seconds(r.Seconds)), r.Seed)
	if r.Stopped != "" {
		said = inline(r.Stopped) + ": " + said
	}
	if r.Shard != "" {
		said += ", shard " + inline(r.Shard)
	}
	if n := len(r.Inconclusive); n > 0 && r.conclusive() {
		said += "; " + noun.Count(n, "run") + " inconclusive"
	}
	if n := r.unconfirmed(); n > 0 {
		said += "; " + noun.Count(n, "finding") + " unconfirmed"
	}
	if n := len(r.NotLearnt); n > 0 {
		said += "; " + noun.Count(n, "scenario") + " left out"
	}
	if n := len(r.LeftOut); n > 0 {
		said += "; " + noun.Count(n, "planned fault") + " left out"
	}
	if n := len(r.uncompared()); n > 0 {
		said += "; " + noun.Count(n, "object") + " not compared"
	}
	return said
}

// unconfirmed returns the number of findings that were not confirmed.
func (r *Report) unconfirmed() (n int) {
	for _, run := range r.Inconclusive {
		if run.Suspicion != nil {
			n++
		}
	}
	return n
}

// preface returns the lines below the first one: what a user must know to judge the result.
func (r *Report) preface() (lines []string) {
	if r.Idle != "" {
		lines = append(lines, inline(r.Idle))
	}
	if r.doubted() {
		_, all := r.triedByKind()
		lines = append(lines, fmt.Sprintf("%d of %d runs with a fault are inconclusive, more than the %.3g %% that --max-inconclusive allows", all.Inconclusive, all.Runs, 100**r.MaxInconclusive))
	}
	lines = append(lines, r.notLearnt()...)
	for _, f := range r.Fixed {
		lines = append(lines, "fixed: "+inline(string(f.Verdict))+": "+inline(f.Sentence)+"; moved to "+inline(f.File))
	}
	return lines
}

// notLearnt names the scenarios that were left out, in one line for each reason.
func (r *Report) notLearnt() (lines []string) {
	names := map[string][]string{}
	for _, s := range r.NotLearnt {
		names[s.Why] = append(names[s.Why], inline(s.Scenario))
	}
	for _, s := range r.NotLearnt {
		switch same := names[s.Why]; {
		case len(same) == 0: // already named
		case len(same) == 1:
			lines = append(lines, "scenario "+same[0]+" was left out: "+inline(s.Why))
		default:
			lines = append(lines, noun.Count(len(same), "scenario")+" were left out: "+inline(s.Why)+": "+some(same))
		}
		delete(names, s.Why)
	}
	return lines
}

// mostNames is the number of scenarios that are named; the JSON report names all.
const mostNames = 6

// some lists names, and the number of those for which there is no room.
func some(names []string) string {
	if n := len(names) - mostNames; n > 1 {
		return strings.Join(names[:mostNames], ", ") + " and " + strconv.Itoa(n) + " more"
	}
	return strings.Join(names, ", ")
}

// howToContinue returns instructions for running the faults that were left out.
func (r *Report) howToContinue() string {
	if r.Stopped != "" {
		return "To run them, repeat the command with --resume."
	}
	return "To run them, repeat the command with --resume, or increase --budget or omit it."
}

// conclusive reports whether any fault gave a result. An inconclusive check is not clean.
func (r *Report) conclusive() bool {
	_, all := r.triedByKind()
	return r.Runs > r.References && (len(r.Tried) == 0 || all.Clean+all.Found+all.Pruned > 0)
}

// recovery describes when the state of a finding was right, or returns "" if this is not known.
func recovery(f judge.Finding) string {
	switch {
	case f.UnrecoveredSeconds > 0:
		return "not within " + span(seconds(f.UnrecoveredSeconds)) + " after the end of the fault"
	case f.RecoveredAfterSeconds > 0 && f.Verdict == judge.RecoveredLate:
		return span(seconds(f.RecoveredAfterSeconds)) + " after the end of the fault"
	case f.RecoveredAfterSeconds > 0:
		return "with help, " + span(seconds(f.RecoveredAfterSeconds)) + " after the end of the fault"
	}
	return ""
}

// alsoBy counts the other faults that led to the same finding.
func alsoBy(f judge.Finding) string {
	if f.AlsoBy == 0 {
		return ""
	}
	return noun.Count(f.AlsoBy, "other fault") + " with the same result"
}

// faultText describes a fault and its point in one line.
func faultText(f *fault.Fault) string {
	if f == nil {
		return "none needed"
	}
	return inline(string(f.Kind) + ": " + f.String())
}

// faultOf describes the fault of a finding, as faultText does.
func faultOf(f judge.Finding) string {
	if f.Fault == nil {
		return faultText(nil)
	}
	return inline(string(f.Fault.Kind) + ": " + f.Fault.Failing(f.Failed))
}

// sure returns how many times the finding was reproduced: "reproduced 3 of 3".
func sure(f judge.Finding) string {
	if f.Attempts == 0 {
		return ""
	}
	return fmt.Sprintf("reproduced %d of %d", f.Reproduced, f.Attempts)
}

// place returns the scenario and the step of a finding, such as "scenario life, step create".
func place(f judge.Finding) string {
	var words []string
	if f.Scenario != "" {
		words = append(words, "scenario "+inline(f.Scenario))
	}
	if f.Step != "" {
		words = append(words, "step "+inline(f.Step))
	}
	return strings.Join(words, ", ")
}

// orNothing returns a value of a difference for display, or "nothing" if it is empty.
func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return inline(value)
}

// reason groups the planned faults that gave no result for the same reason.
type reason struct {
	why   string
	count int
	kinds []string // each with its count, such as "3 conflict"
	all   []NotRun
}

// reasons groups the faults by reason, the most frequent first.
func reasons(all []NotRun) []reason {
	var groups []reason
	at := map[string]int{}
	for _, n := range all {
		why := inline(n.Why)
		if why == "" {
			why = "no reason was given"
		}
		i, known := at[why]
		if !known {
			i = len(groups)
			at[why] = i
			groups = append(groups, reason{why: why})
		}
		groups[i].count++
		groups[i].all = append(groups[i].all, n)
	}
	for i := range groups {
		groups[i].kinds = kindCounts(groups[i].all)
	}
	sortByCount(groups)
	return groups
}

func sortByCount(groups []reason) {
	slices.SortStableFunc(groups, func(a, b reason) int { return b.count - a.count })
}

// kindCounts returns the count of each kind, such as "3 conflict" and "1 restart", in order of
// first appearance.
func kindCounts(all []NotRun) []string {
	var order []fault.Kind
	counts := map[fault.Kind]int{}
	for _, n := range all {
		if counts[n.Fault.Kind]++; counts[n.Fault.Kind] == 1 {
			order = append(order, n.Fault.Kind)
		}
	}
	texts := make([]string, len(order))
	for i, kind := range order {
		texts[i] = fmt.Sprintf("%d %s", counts[kind], inline(string(kind)))
	}
	return texts
}

// uncompared returns each object that is not compared, because it did not exist in every
// run without a fault.
func (r *Report) uncompared() []string {
	return slices.DeleteFunc(r.masked(), func(field string) bool { return !strings.HasSuffix(field, state.WholeObject) })
}

// blind returns the controller's own objects that could not be compared, from each scenario in
// which they are at least half of its objects.
func (r *Report) blind() []string {
	return r.ofScenarios(func(s Scenario) []string { return s.Blind })
}

// unseen returns each field outside status and metadata that is not compared.
func (r *Report) unseen() []string {
	return r.ofScenarios(func(s Scenario) []string { return s.Unseen })
}

// masked returns each field that at least one scenario does not compare.
func (r *Report) masked() []string {
	return r.ofScenarios(func(s Scenario) []string { return s.Masked })
}

// ofScenarios joins lists of all scenarios.
func (r *Report) ofScenarios(list func(Scenario) []string) []string {
	var all []string
	for _, s := range r.Scenarios {
		for _, text := range list(s) {
			all = append(all, inline(text))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
