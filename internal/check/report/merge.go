package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

// Merge combines the shards of one plan. It fails if the parts belong to different plans.
// If shards are missing, it adds a note.
func Merge(parts []*Report) (*Report, error) {
	switch len(parts) {
	case 0:
		return nil, errors.New("there is no report to merge; name the files written by `koboshi check --shard`")
	case 1:
		whole := *parts[0]
		if whole.Shard == "" {
			return &whole, nil
		}
	}
	numbered, err := shardsOf(parts)
	if err != nil {
		return nil, err
	}
	merged := numbered.start()
	for _, s := range numbered.shards {
		merged.take(s.report)
	}
	merged.Unused = numbered.unused()
	merged.MissingShards = numbered.gone()
	merged.LeftToShards, merged.Notes = numbered.missing(merged.Notes)
	merged.Notes = append(merged.Notes, numbered.unequal()...)
	merged.Sort()
	return merged, nil
}

// shard is one of the reports to merge, with the number of its shard.
type shard struct {
	number int
	report *Report
}

type sharded struct {
	shards []shard // in order
	of     int
}

func shardsOf(parts []*Report) (sharded, error) {
	all := sharded{}
	first := parts[0]
	for _, part := range parts {
		number, of, err := parseShard(part.Shard)
		switch {
		case err != nil:
			return all, err
		case part.Version != first.Version:
			return all, differ("versions", first, part, fmt.Sprint(first.Version), fmt.Sprint(part.Version))
		case part.Subject != first.Subject:
			return all, differ("subjects", first, part, inline(first.Subject), inline(part.Subject))
		case part.Seed != first.Seed:
			return all, differ("seeds", first, part, fmt.Sprint(first.Seed), fmt.Sprint(part.Seed))
		case all.of != 0 && of != all.of:
			return all, differ("numbers of shards", first, part, fmt.Sprint(all.of), fmt.Sprint(of))
		case slices.ContainsFunc(all.shards, func(s shard) bool { return s.number == number }):
			return all, fmt.Errorf("shard %s is given twice; name the report of each shard once", part.Shard)
		}
		all.of = of
		all.shards = append(all.shards, shard{number, part})
	}
	slices.SortFunc(all.shards, func(a, b shard) int { return a.number - b.number })
	return all, nil
}

func differ(what string, a, b *Report, left, right string) error {
	return fmt.Errorf("shards %s and %s have different %s (%s and %s), so they are not parts of one plan; run all shards with the same --seed and the same n in --shard i/n",
		a.Shard, b.Shard, what, left, right)
}

func parseShard(s string) (number, of int, err error) {
	left, right, found := strings.Cut(s, "/")
	number, errLeft := strconv.Atoi(left)
	of, errRight := strconv.Atoi(right)
	if !found || errLeft != nil || errRight != nil || number < 1 || number > of {
		return 0, 0, fmt.Errorf("a report with shard %q cannot be merged; merge only reports of `koboshi check --shard i/n`", inline(s))
	}
	return number, of, nil
}

// start returns a report with the data that all shards share.
func (s sharded) start() *Report {
	first := s.shards[0].report
	merged := &Report{
		Version: first.Version, Subject: first.Subject, Seed: first.Seed, Started: first.Started,
		Command: withoutShard(first.Command, first.Shard), Args: first.Args, Sources: first.Sources, Profile: first.Profile,
		Settings: first.Settings, SettingsFile: first.SettingsFile,
	}
	for _, part := range s.shards {
		if part.report.Started.Before(merged.Started) {
			merged.Started = part.report.Started
		}
	}
	return merged
}

func withoutShard(command, shard string) string {
	for _, flag := range []string{" --shard " + shard, " --shard=" + shard} {
		command = strings.Replace(command, flag, "", 1)
	}
	return command
}

// take adds a shard to the report.
func (r *Report) take(part *Report) {
	r.Seconds += part.Seconds
	r.Runs += part.Runs
	r.References += part.References
	r.Confirmations += part.Confirmations
	r.Inconclusive = append(r.Inconclusive, part.Inconclusive...)
	r.NotApplied = append(r.NotApplied, part.NotApplied...)
	r.LeftOut = append(r.LeftOut, part.LeftOut...)
	r.Inputs = append(r.Inputs, part.Inputs...)
	r.takeLimits(part)
	for _, f := range part.Findings {
		r.Findings = takeFinding(r.Findings, f, joined)
	}
	for _, f := range part.Remarks {
		r.Remarks = takeFinding(r.Remarks, f, func(all []judge.Finding, f judge.Finding) []judge.Finding { return append(all, f) })
	}
	for _, s := range part.Scenarios {
		r.takeScenario(s)
	}
	for _, t := range part.Tried {
		r.takeTried(t)
	}
	for _, note := range part.Notes {
		if !slices.Contains(r.Notes, note) {
			r.Notes = append(r.Notes, note)
		}
	}
}

// takeLimits adds everything that limits the result of a shard, such as scenarios that were not
// learnt.
func (r *Report) takeLimits(part *Report) {
	for _, s := range part.NotLearnt {
		if !slices.ContainsFunc(r.NotLearnt, func(known NotLearnt) bool { return known.Scenario == s.Scenario }) {
			r.NotLearnt = append(r.NotLearnt, s)
		}
	}
	for _, f := range part.Fixed {
		if !slices.ContainsFunc(r.Fixed, func(known Fixed) bool { return known.ID == f.ID }) {
			r.Fixed = append(r.Fixed, f)
		}
	}
	if r.Stopped == "" && part.Stopped != "" {
		r.Stopped = "shard " + part.Shard + " " + part.Stopped
	}
	r.Idle = cmp.Or(r.Idle, part.Idle)
	if r.MaxInconclusive == nil {
		r.MaxInconclusive = part.MaxInconclusive
	}
}

// takeFinding adds a finding to a list with the function add, unless the list has it already.
func takeFinding(all []judge.Finding, f judge.Finding, add func([]judge.Finding, judge.Finding) []judge.Finding) []judge.Finding {
	i := slices.IndexFunc(all, func(known judge.Finding) bool { return known.ID == f.ID })
	if i < 0 || f.ID == "" {
		return add(all, f)
	}
	all[i] = better(all[i], f)
	return all
}

func (r *Report) takeScenario(s Scenario) {
	i := slices.IndexFunc(r.Scenarios, func(known Scenario) bool { return known.Name == s.Name })
	if i < 0 {
		s.Masked, s.Unseen, s.Blind = slices.Clone(s.Masked), slices.Clone(s.Unseen), slices.Clone(s.Blind)
		r.Scenarios = append(r.Scenarios, s)
		return
	}
	known := &r.Scenarios[i]
	known.Writes = max(known.Writes, s.Writes)
	known.Seconds = max(known.Seconds, s.Seconds)
	known.Masked, known.Unseen, known.Blind = join(known.Masked, s.Masked), join(known.Unseen, s.Unseen), join(known.Blind, s.Blind)
}

// join returns the first list with those texts of the second list that the first list lacks.
func join(all, more []string) []string {
	for _, text := range more {
		if !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

func (r *Report) takeTried(t Tried) {
	i := slices.IndexFunc(r.Tried, func(known Tried) bool { return known.Kind == t.Kind && known.Scenario == t.Scenario })
	if i < 0 {
		r.Tried = append(r.Tried, t)
		return
	}
	r.Tried[i].add(t)
}

// unused returns the permissions that no shard needed.
func (s sharded) unused() []judge.Unused {
	unused := slices.Clone(s.shards[0].report.Unused)
	for _, part := range s.shards[1:] {
		unused = slices.DeleteFunc(unused, func(u judge.Unused) bool { return !slices.Contains(part.report.Unused, u) })
	}
	return unused
}

// missing adds a note that names the missing shards, and counts their faults: the faults that the first
// shard left to others, minus the parts of the plan that the other given shards have. A shard also runs
// saved findings and second kills, which are no part of the plan.
func (s sharded) missing(notes []string) (left int, all []string) {
	if s.gone() == 0 {
		return 0, notes
	}
	left = s.shards[0].report.LeftToShards
	for _, part := range s.shards[1:] {
		left -= part.report.WholePlan - part.report.LeftToShards
	}
	note := fmt.Sprintf("Merged %d of %d shards. The faults of these missing shards were not tried: %s.",
		len(s.shards), s.of, strings.Join(s.gaps(), ", "))
	return max(left, 0), append(slices.Clone(notes), note)
}

// gone returns the number of missing shards.
func (s sharded) gone() int { return s.of - len(s.shards) }

// unequal returns a note if the shards have plans of different sizes. Each shard learns the plan itself,
// some requests of a controller depend on chance, and a shard may end early. A fault that only some
// shards planned may be in no part.
func (s sharded) unequal() []string {
	sizes := make([]int, len(s.shards))
	for i, part := range s.shards {
		sizes[i] = part.report.WholePlan
	}
	least, most := slices.Min(sizes), slices.Max(sizes)
	if least == most {
		return nil
	}
	return []string{fmt.Sprintf("The shards have plans of different sizes, from %d to %d faults: some requests of the controller depend on timing, or a shard ended early. "+
		"Faults that only some of the shards planned may not have been tried.", least, most)}
}

// gaps returns the missing shards, but only the first ten by number.
func (s sharded) gaps() []string {
	const most = 10
	var gaps []string
	next := 0
	for number := 1; number <= s.of; number++ {
		if next < len(s.shards) && s.shards[next].number == number {
			next++
			continue
		}
		if len(gaps) == most {
			return append(gaps, fmt.Sprintf("and %d more", s.gone()-most))
		}
		gaps = append(gaps, fmt.Sprintf("%d/%d", number, s.of))
	}
	return gaps
}
