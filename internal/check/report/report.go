// Package report writes the result of a check for users and for programs.
//
//	Report ──┬── WriteText         a terminal         Progress   a terminal, during a check
//	         ├── WriteJSON         programs, ReadFile, Merge
//	         ├── WriteJUnit        the test page of a CI system
//	         ├── WriteSARIF        code review
//	         ├── WriteCodeQuality  code review in GitLab
//	         ├── WriteMarkdown     a comment of a pull request
//	         └── WriteHTML         one page with the timeline of each finding
//
// Findings are also saved as files for replays; see SaveFinding. Names of objects, logs and
// values come from the controller and are not trusted, so they are escaped and cannot
// control a terminal, a CI system or a browser; see plain.
package report

import (
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

// Version is the version of the format. Readers reject other versions.
const Version = 1

// Report is the result of a check, or of one shard of a check.
type Report struct {
	Version int    `json:"version"` // the version of this format, 1
	Subject string `json:"subject"`
	// Command is the command line of the check.
	Command string `json:"command"`
	// Args holds the flags of the check, then "--" and the controller's command.
	Args []string `json:"args,omitempty"`
	// Settings lists the settings that came from the file SettingsFile.
	Settings     []string  `json:"settings,omitempty"`
	SettingsFile string    `json:"settingsFile,omitempty"`
	Seed         uint64    `json:"seed"`
	Started      time.Time `json:"started"`
	// Profile names the controllers of the planes, with the reason if it was chosen
	// automatically.
	Profile string `json:"profile,omitempty"`
	// Seconds is the duration of the check, or the sum of the durations of merged shards.
	Seconds float64 `json:"seconds"`
	// Shard is empty, or the number of the shard and the number of shards, such as "1/4".
	Shard    string          `json:"shard,omitempty"`
	Findings []judge.Finding `json:"findings"`
	// Remarks lists behavior that is worth knowing, but may be intended. Remarks do not affect the
	// exit code.
	Remarks []judge.Finding `json:"remarks,omitempty"`
	// Strict reports whether remarks about inputs and about numbers of requests count as findings.
	Strict    bool       `json:"strict,omitempty"`
	Scenarios []Scenario `json:"scenarios"`
	Tried     []Tried    `json:"tried"`
	// Runs is the number of all runs. References is the number of learning runs, which have
	// no fault. Confirmations is the number of runs that were made to confirm a finding.
	Runs          int `json:"runs"`
	References    int `json:"references"`
	Confirmations int `json:"confirmations"`
	// Upgrades is the number of runs that replaced the old version of the controller. Expected
	// describes the changes of the upgrade that the project expects, as in release notes.
	Upgrades int      `json:"upgrades,omitempty"`
	Expected []string `json:"expected,omitempty"`
	// Inputs lists the inputs of the check with their outcomes.
	Inputs []Input `json:"inputs,omitempty"`
	// Inconclusive lists the runs without a result, with the reason.
	Inconclusive []NotRun `json:"inconclusive,omitempty"`
	NotApplied   []NotRun `json:"notApplied,omitempty"`
	// LeftOut lists planned faults that the budget did not cover. If the report is of a shard,
	// WholePlan is the number of faults that all shards together run, according to this shard's plan,
	// and LeftToShards is the number of those that other shards run. If the report is merged,
	// MissingShards is the number of shards without a report, and LeftToShards that of their faults.
	LeftOut       []NotRun `json:"leftOut,omitempty"`
	WholePlan     int      `json:"wholePlan,omitempty"`
	LeftToShards  int      `json:"leftToShards,omitempty"`
	MissingShards int      `json:"missingShards,omitempty"`
	// NotLearnt lists the scenarios for which no fault was planned, because they could not
	// be run without a fault.
	NotLearnt []NotLearnt `json:"notLearnt,omitempty"`
	// Stopped is the reason why the check ended early, for example because it was
	// interrupted. Idle is the reason why the controller did none of its work.
	Stopped string `json:"stopped,omitempty"`
	Idle    string `json:"idle,omitempty"`
	// MaxInconclusive is the largest share of inconclusive runs with which the check still has a
	// result. nil means any share.
	MaxInconclusive *float64 `json:"maxInconclusive,omitempty"`
	// Fixed lists saved findings that no longer occur.
	Fixed []Fixed `json:"fixed,omitempty"`
	// Unused lists the permissions that no run needed. They are remarks, not findings.
	Unused []judge.Unused `json:"unused,omitempty"`
	// Notes lists remarks that are not findings.
	Notes []string `json:"notes,omitempty"`
	// Sources names the files to which a code review can attach a finding.
	Sources Sources `json:"sources,omitzero"`
}

// NotLearnt is a scenario that could not be run without a fault, with the reason.
type NotLearnt struct {
	Scenario string `json:"scenario"`
	Why      string `json:"why"`
}

// Fixed is a saved finding that no longer occurs. File is the file to which it was moved.
type Fixed struct {
	ID       string        `json:"id"`
	Verdict  judge.Verdict `json:"verdict"`
	Sentence string        `json:"sentence"`
	File     string        `json:"file"`
}

// Sources names files of the project by their path in the project, each followed by ":LINE"
// if the line is known. Every field may be empty.
type Sources struct {
	// Main is the file of the controller's main function.
	Main string `json:"main,omitempty"`
	// Kinds maps "Kind.group" to the file that declares the kind.
	Kinds map[string]string `json:"kinds,omitempty"`
	// RBAC is the file with the role of the controller.
	RBAC string `json:"rbac,omitempty"`
}

// Scenario summarizes a scenario, as learnt from its runs without a fault.
type Scenario struct {
	Name  string `json:"name"`
	Steps int    `json:"steps"`
	// Writes is the number of effective writes of the controller in a run without a fault.
	// Seconds is the duration of a run without a fault.
	Writes  int     `json:"writes"`
	Seconds float64 `json:"seconds"`
	// Masked lists the fields that differ between runs and are not compared.
	Masked []string `json:"masked,omitempty"`
	// Unseen lists the masked fields outside status and metadata. Blind lists objects of the
	// controller that cannot be compared, if these are at least half of its objects.
	Unseen []string `json:"unseen,omitempty"`
	Blind  []string `json:"blind,omitempty"`
	// Kind is the main kind of the scenario, as "Kind.group". File is the file from which
	// the scenario was read, or the sample from which it was generated. Both may be empty.
	Kind string `json:"kind,omitempty"`
	File string `json:"file,omitempty"`
}

// Tried counts the faults of one kind. Runs = Clean + Found + NotApplied + Inconclusive.
// Runs that confirm a finding are not counted.
type Tried struct {
	// Scenario is the scenario in which the faults were tried. If it is empty, the counts
	// are for all scenarios, and JUnit has no suite per scenario.
	Scenario     string     `json:"scenario,omitempty"`
	Kind         fault.Kind `json:"kind"`
	Planned      int        `json:"planned"` // in a shard, only the faults of that shard
	Runs         int        `json:"runs"`
	Clean        int        `json:"clean"`
	Found        int        `json:"found"`
	NotApplied   int        `json:"notApplied"`
	Inconclusive int        `json:"inconclusive"`
	// Pruned counts faults whose run was cut short, because the state after the fault had
	// already been explored.
	Pruned int `json:"pruned"`
	// Seconds is the sum of the durations of the runs.
	Seconds float64 `json:"seconds,omitempty"`
}

// NotRun is a planned fault without a result, with the reason.
type NotRun struct {
	Scenario string      `json:"scenario"`
	Fault    fault.Fault `json:"fault"`
	Why      string      `json:"why"`
	// Suspicion is a finding that was not confirmed, because it was not reproduced often
	// enough or also occurred without the fault. It may be nil.
	Suspicion *judge.Finding `json:"suspicion,omitempty"`
}

// Sort puts the most serious findings first. Findings with the same verdict keep
// their order.
func (r *Report) Sort() {
	slices.SortStableFunc(r.Findings, func(a, b judge.Finding) int {
		return rank(a.Verdict) - rank(b.Verdict)
	})
}

// ExitCode returns 1 if anything was found, and 2 if nothing was found but the check proves
// nothing: it ended early, the controller did none of its work, its own objects could not be
// compared, or too many runs were inconclusive. Otherwise, it returns 0. A remark is not a finding.
// In a shard, the share of inconclusive runs does not count, because a small shard may have only a
// few runs. If the controller did none of its work, missing permissions only explain why, so they
// do not make the exit code 1.
func (r *Report) ExitCode() int {
	_, all := r.triedByKind()
	switch {
	case r.Idle != "" && !slices.ContainsFunc(r.Findings, func(f judge.Finding) bool { return f.Verdict != judge.RBACMissing }):
		return 2
	case len(r.Findings) > 0:
		return 1
	case r.Stopped != "", len(r.blind()) > 0:
		return 2
	case r.Shard == "" && (all.Planned > 0 && !r.conclusive() || r.doubted()):
		return 2
	}
	return 0
}

// doubted reports whether so many runs were inconclusive that the check has no result. A single
// inconclusive run does not matter, even if there are only a few runs.
func (r *Report) doubted() bool {
	_, all := r.triedByKind()
	return r.MaxInconclusive != nil && all.Inconclusive > 1 && float64(all.Inconclusive) > *r.MaxInconclusive*float64(all.Runs)
}

// remarks returns all remarks, including one for each resource with unused permissions.
func (r *Report) remarks() []judge.Finding {
	return slices.Concat(r.Remarks, judge.RemarkUnused(r.Unused))
}

// Add adds findings. It separates remarks from the findings that make a check fail. A
// permission that is missing in several scenarios is one finding, and so are a finding about a
// field and a finding about a part of this field after the same fault.
func (r *Report) Add(found ...judge.Finding) {
	for _, f := range found {
		isRemark := f.NeedsStrict() && !r.Strict || f.Verdict.IsRemark() && !f.Verdict.IsStrict()
		finding, remark := same(r.Findings, f), same(r.Remarks, f)
		switch {
		case finding >= 0:
			fold(&r.Findings[finding], f)
		case remark >= 0 && isRemark:
			fold(&r.Remarks[remark], f)
		case isRemark:
			r.Remarks = append(r.Remarks, f)
		default:
			if remark >= 0 {
				fold(&f, r.Remarks[remark])
				r.Remarks = slices.Delete(r.Remarks, remark, remark+1)
			}
			r.Findings = joined(r.Findings, f)
		}
	}
}

// joined adds a finding to a list. If one finding of the list includes it, that finding counts its
// fault, too. If it includes findings of the list, it takes their place. A finding that needs no
// fault stays separate, because its absence from a later report means that it is fixed.
func joined(all []judge.Finding, f judge.Finding) []judge.Finding {
	if f.Fault == nil {
		return append(all, f)
	}
	if i := slices.IndexFunc(all, func(known judge.Finding) bool { return known.Includes(f) }); i >= 0 {
		all[i] = counting(all[i], f)
		return all
	}
	var kept []judge.Finding
	for _, known := range all {
		if f.Includes(known) {
			f = counting(f, known)
			continue
		}
		kept = append(kept, known)
	}
	return append(kept, f)
}

// counting returns a finding that also counts the faults and scenarios of one of its parts.
func counting(whole, part judge.Finding) judge.Finding {
	whole.AlsoBy += 1 + part.AlsoBy
	for _, scenario := range slices.Concat([]string{part.Scenario}, part.AlsoIn) {
		if scenario != whole.Scenario && !slices.Contains(whole.AlsoIn, scenario) {
			whole.AlsoIn = append(slices.Clone(whole.AlsoIn), scenario)
		}
	}
	return whole
}

// Has reports whether the report already has the same finding from another scenario.
func (r *Report) Has(f judge.Finding) bool { return same(r.Findings, f) >= 0 }

// same returns the position of the same finding from another scenario, or a negative number. A crash without a fault
// is the same if it happens in the same place, whatever leads to it.
func same(all []judge.Finding, f judge.Finding) int {
	return slices.IndexFunc(all, func(known judge.Finding) bool {
		switch f.Verdict {
		case judge.RBACMissing, judge.APIRemoved:
			return f.ID != "" && known.ID == f.ID
		case judge.Crashed:
			return f.Frame != "" && f.Fault == nil && known.Verdict == f.Verdict && known.Fault == nil && known.Frame == f.Frame
		}
		return false
	})
}

// fold adds the scenario of a finding to the same finding in another scenario. If it also happens without an input,
// it is not due to one. For a crash, the scenario may contain the same value.
func fold(known *judge.Finding, f judge.Finding) {
	if known.Scenario != f.Scenario && !slices.Contains(known.AlsoIn, f.Scenario) {
		known.AlsoIn = append(known.AlsoIn, f.Scenario)
	}
	if f.Input == "" && f.Verdict != judge.Crashed {
		known.Input = ""
	}
}

// add adds the counts of another Tried.
func (t *Tried) add(other Tried) {
	t.Planned += other.Planned
	t.Runs += other.Runs
	t.Clean += other.Clean
	t.Found += other.Found
	t.NotApplied += other.NotApplied
	t.Inconclusive += other.Inconclusive
	t.Pruned += other.Pruned
	t.Seconds += other.Seconds
}

// triedByKind returns the counts per kind for all scenarios together, in order of first
// appearance, and their sum.
func (r *Report) triedByKind() (kinds []Tried, all Tried) {
	at := map[fault.Kind]int{}
	for _, t := range r.Tried {
		i, known := at[t.Kind]
		if !known {
			i = len(kinds)
			at[t.Kind] = i
			kinds = append(kinds, Tried{Kind: t.Kind})
		}
		kinds[i].add(t)
		all.add(t)
	}
	return kinds, all
}
