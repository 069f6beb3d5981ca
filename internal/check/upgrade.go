package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

// Upgrade configures a check of an upgrade, in which the only faults are kills of the new version.
type Upgrade struct {
	// From names the old version as the user does, and Old is the old version.
	From string
	Old  subject.Subject
}

// upgrading collects the results of the upgrades.
type upgrading struct {
	*check
	made     int                        // the scenarios with a result
	kills    map[string][]fault.Fault   // when the new version can be killed, by scenario
	shown    map[string][]judge.Finding // what the upgrades without a kill have shown, by scenario
	longest  time.Duration              // the duration of the longest upgrade
	killed   int                        // the kills with a result
	late     int                        // the kills for which there was no time
	capped   int                        // the kills that were not planned, because there are too many
	accepted []judge.Finding            // what the project expects
	matched  map[string]bool            // the lines of the settings that matched
}

// upgradable returns the parts of the scenarios that are upgraded.
func upgradable(all []*scenario.Scenario, generated bool) (some []*scenario.Scenario) {
	for _, sc := range all {
		if part := sc.Founding(generated); part != nil {
			some = append(some, part)
		}
	}
	return some
}

// upgrade replaces the old version by the new one in each scenario, and back, and reports what this does
// to the cluster. Its labs have the old version installed.
func (c *check) upgrade(ctx context.Context) error {
	c.planned = true        // no fault is injected
	c.result.Compared = nil // a scenario that is only learnt proves nothing about the upgrade
	var lessons []*fleet.Lesson
	for _, sc := range c.Scenarios {
		l, err := c.upgradeLesson(sc)
		if err != nil {
			return err
		}
		lessons = append(lessons, l)
	}
	labs := c.fleet.Sibling(func(config *lab.Config) {
		config.Subject, config.Next = c.Upgrade.Old, &c.Subject
	})
	defer labs.Stop()
	c.Observer.Phase("starting planes with the old version")
	if err := labs.Grow(ctx, min(max(c.fleet.Len(), 1), max(len(lessons), 1))); err != nil {
		return fmt.Errorf("installing the old version, %s: %w", c.Upgrade.From, err)
	}
	u := &upgrading{check: c, matched: map[string]bool{}, kills: map[string][]fault.Fault{}, shown: map[string][]judge.Finding{}}
	c.Observer.Phase("upgrading " + noun.Count(len(lessons), "scenario"))
	c.Observer.Total(len(lessons))
	err := labs.Each(ctx, len(lessons), func(ctx context.Context, w *fleet.Worker, i int) error {
		began := time.Now()
		var err error
		if !c.hasEnough() {
			err = u.scenario(ctx, w, lessons[i])
		}
		c.Observer.Done("", time.Since(began))
		return err
	})
	if err == nil {
		err = u.kill(ctx, labs, lessons)
	}
	u.conclude(len(lessons))
	return err
}

// upgradeLesson returns the lesson of a scenario. A scenario that the new version cannot run in an empty
// cluster is upgraded all the same, because stored objects may be in the form that the new version
// refuses.
func (c *check) upgradeLesson(sc *scenario.Scenario) (*fleet.Lesson, error) {
	if l := c.lessons[sc.Name]; l != nil && l.Reference != nil {
		return l, nil
	}
	why := "it crashes"
	c.mu.Lock()
	r := c.result.Report
	for _, left := range r.NotLearnt {
		if left.Scenario == sc.Name {
			why = left.Why
		}
	}
	r.NotLearnt = slices.DeleteFunc(r.NotLearnt, func(left report.NotLearnt) bool { return left.Scenario == sc.Name })
	c.result.Scenarios[sc.Name] = sc // without it, findings could not be saved
	c.mu.Unlock()
	c.note(fmt.Sprintf("scenario %s: the upgrade is not compared with a fresh installation, because the new version cannot run the scenario in an empty cluster: %s", sc.Name, why))
	return c.fleet.Unlearnt(sc)
}

// scenario upgrades one scenario twice. What both runs show, and a fresh installation of the new version
// does not show, is a finding.
func (u *upgrading) scenario(ctx context.Context, w *fleet.Worker, l *fleet.Lesson) error {
	kind := lab.ThereAndBack
	if u.Opinions.Upgrade.OneWay {
		kind = lab.There
	}
	first, why, err := u.run(ctx, w, l, kind, nil, 0)
	if err != nil {
		return err
	}
	if first == nil {
		u.notLearnt(l.Scenario, "it could not be upgraded: "+why)
		return nil
	}
	u.done(first, l)
	found := first.Findings
	if len(found)+len(first.Accepted) == 0 {
		u.complete(l)
		return nil
	}
	second, why, err := u.run(ctx, w, l, kind, nil, 1)
	if err != nil {
		return err
	}
	if second == nil {
		for _, f := range found {
			u.note(fmt.Sprintf("scenario %s: this is no finding, because the upgrade could not be repeated: %s: %s", l.Scenario.Name, f.Verdict, f.Sentence))
		}
		u.notLearnt(l.Scenario, "it could not be upgraded twice: "+why)
		return nil
	}
	if found, err = u.withoutFresh(ctx, w, l, u.inBoth(l, found, second.Findings)); err != nil {
		return err
	}
	for _, f := range found {
		f.Attempts, f.Reproduced = 2, 2
		u.found(f, l, second)
	}
	u.complete(l)
	return nil
}

// complete counts a scenario about which everything is known.
func (u *upgrading) complete(l *fleet.Lesson) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.made++
	u.result.Compared = append(u.result.Compared, l.Scenario.Name)
}

// withoutFresh removes the findings that a fresh installation of the new version shows as well. If
// nothing can be concluded from such an installation, the findings that it may show are only noted.
func (u *upgrading) withoutFresh(ctx context.Context, w *fleet.Worker, l *fleet.Lesson, found []judge.Finding) ([]judge.Finding, error) {
	if !slices.ContainsFunc(found, mayBeFresh) {
		return found, nil
	}
	var fresh *lab.Upgraded
	why := "the new version cannot run the scenario there"
	if len(l.Reference.Steps) > 0 {
		var err error
		if fresh, why, err = u.run(ctx, w, l, lab.Fresh, nil, 2); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(found, func(f judge.Finding) bool {
		if fresh == nil && mayBeFresh(f) {
			u.note(fmt.Sprintf("scenario %s: this is no finding, because it could not be compared with a fresh installation (%s): %s: %s", l.Scenario.Name, why, f.Verdict, f.Sentence))
			return true
		}
		return fresh != nil && contains(fresh.Findings, f)
	}), nil
}

// run makes one run, with or without a kill. If the run shows nothing, it returns nil and the reason.
func (u *upgrading) run(ctx context.Context, w *fleet.Worker, l *fleet.Lesson, kind lab.UpgradeKind, kill *fault.Fault, n uint64) (done *lab.Upgraded, why string, err error) {
	done, err = w.Upgrade(ctx, l, kind, kill, u.Opinions.Upgrade.Expected, u.Seed+n)
	var failed *fleet.LabError
	var setup *fleet.SetupError
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, "", context.Cause(ctx)
	case errors.As(err, &failed), errors.As(err, &setup):
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", err
	}
	u.tally.upgraded()
	if done.Inconclusive != "" && len(done.Findings) == 0 {
		return nil, done.Inconclusive, nil
	}
	return done, "", nil
}

// done records what a run shows apart from its findings.
func (u *upgrading) done(first *lab.Upgraded, l *fleet.Lesson) {
	for _, note := range first.Notes {
		u.note(note)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.longest = max(u.longest, first.Took)
	u.kills[l.Scenario.Name] = first.Kills
	u.shown[l.Scenario.Name] = slices.Concat(first.Findings, first.Accepted)
	u.accepted = append(u.accepted, first.Accepted...)
	for _, line := range first.Matched {
		u.matched[line] = true
	}
}

// inBoth returns the findings that a second run shows as well. The others are only noted.
func (u *upgrading) inBoth(l *fleet.Lesson, first, second []judge.Finding) (both []judge.Finding) {
	for _, f := range first {
		if contains(second, f) {
			both = append(both, f)
			continue
		}
		u.note(fmt.Sprintf("scenario %s: only one of two upgrades showed this, so it is no finding: %s: %s", l.Scenario.Name, f.Verdict, f.Sentence))
	}
	return both
}

func contains(all []judge.Finding, f judge.Finding) bool {
	return slices.ContainsFunc(all, func(other judge.Finding) bool { return other.ID == f.ID })
}

// mayBeFresh reports whether a fresh installation of the new version may show the same. An object of the
// installation that is refused in place of another one cannot be refused there.
func mayBeFresh(f judge.Finding) bool {
	return f.Verdict == judge.Wedged && f.Request != "" || f.Verdict == judge.Crashed || f.Verdict == judge.NotAsFresh
}

// found reports a finding, unless another scenario has shown the same.
func (u *upgrading) found(f judge.Finding, l *fleet.Lesson, run *lab.Upgraded) {
	one := *l.Lesson
	one.Trace = run.Trace
	u.faultless(f, &fleet.Lesson{Lesson: &one})
}

// conclude notes what was upgraded, and what the project expects.
func (u *upgrading) conclude(all int) {
	if u.made < all && !u.hasEnough() {
		u.result.Report.Stopped = fmt.Sprintf("only %d of %s could be upgraded", u.made, noun.Count(all, "scenario"))
	}
	way := "and back"
	if u.Opinions.Upgrade.OneWay {
		way = "but not back, as the settings say"
	}
	u.note(fmt.Sprintf("upgraded %s from %s, %s", noun.Count(u.made, "scenario"), u.Upgrade.From, way))
	if u.killed > 0 {
		u.note(fmt.Sprintf("upgraded again, and killed the new version at %s of its rollout", noun.Count(u.killed, "write")))
	}
	for _, note := range u.leftOutKills() {
		u.note(note)
	}
	for _, f := range u.accepted {
		if !slices.Contains(u.result.Report.Expected, f.Sentence) {
			u.result.Report.Expected = append(u.result.Report.Expected, f.Sentence)
		}
	}
	for _, line := range u.Opinions.Upgrade.Expected {
		if !u.matched[line] {
			u.note(fmt.Sprintf("the line %q of check.upgrade.expected matched nothing; remove it if the upgrade no longer makes the change", line))
		}
	}
}
