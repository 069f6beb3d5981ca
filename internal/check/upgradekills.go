package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/upgrade"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

const (
	// mostKills is the number of writes in the upgrade of one scenario at which the new version is killed,
	// and mostAllKills that of all scenarios.
	mostKills, mostAllKills = 8, 40
	// cleanKills is the number of runs without a finding after which a saved finding counts as fixed.
	cleanKills = 3
)

// upgradeKill is a kill of the new version in the upgrade of a scenario.
type upgradeKill struct {
	lesson *fleet.Lesson
	fault  fault.Fault
}

// kill upgrades the scenarios again, and kills the new version while it makes its first writes over what
// the old one has left.
func (u *upgrading) kill(ctx context.Context, labs *fleet.Fleet, lessons []*fleet.Lesson) error {
	kills := u.planKills(lessons)
	if len(kills) == 0 || u.hasEnough() {
		return nil
	}
	u.Observer.Phase("killing the new version at " + noun.Count(len(kills), "write"))
	u.Observer.Total(len(kills))
	return labs.Each(ctx, len(kills), func(ctx context.Context, w *fleet.Worker, i int) error {
		began := time.Now()
		var err error
		if !u.hasEnough() && u.hasTime() {
			err = u.killAt(ctx, w, kills[i])
		}
		u.Observer.Done(kills[i].fault.Kind, time.Since(began))
		return err
	})
}

// planKills returns the kills, which alternate between the scenarios. A saved finding comes first, and is
// all that a replay does. A scenario that the new version cannot run in an empty cluster is left out,
// because nothing is known about the right state.
func (u *upgrading) planKills(lessons []*fleet.Lesson) []upgradeKill {
	var groups [][]upgradeKill
	for _, l := range lessons {
		if len(l.Reference.Steps) == 0 {
			continue
		}
		chosen := slices.DeleteFunc(slices.Clone(u.First[l.Scenario.Name]), func(f fault.Fault) bool { return !inUpgrade(f) })
		if !u.Only {
			for _, f := range telling(u.kills[l.Scenario.Name]) {
				if !slices.ContainsFunc(chosen, func(known fault.Fault) bool { return fault.Same(known, f) }) {
					chosen = append(chosen, f)
				}
			}
		}
		var kills []upgradeKill
		for _, f := range chosen {
			kills = append(kills, upgradeKill{l, f})
		}
		groups = append(groups, kills)
	}
	all := scenario.ByTurns(groups)
	return all[:min(len(all), mostAllKills)]
}

// inUpgrade reports whether a fault is a kill during an upgrade. Other checks cannot inject it.
func inUpgrade(f fault.Fault) bool { return f.Point.Step == upgrade.Up }

// telling returns the kills that are most likely to show something: objects that are created or deleted
// often belong together with others, and a status only reports what is done.
func telling(kills []fault.Fault) []fault.Fault {
	rank := func(f fault.Fault) int {
		switch {
		case strings.HasSuffix(f.Point.Resource, "/status"):
			return 2
		case f.Point.Verb == "create", f.Point.Verb == "delete":
			return 0
		}
		return 1
	}
	kills = slices.Clone(kills)
	slices.SortStableFunc(kills, func(a, b fault.Fault) int { return rank(a) - rank(b) })
	return kills[:min(len(kills), mostKills)]
}

// hasTime reports whether a run, and those that confirm its finding, fit into the budget.
func (u *upgrading) hasTime() bool { return u.Budget <= 0 || u.left() > 3*u.longest }

// killAt kills the new version at one write, twice if the first run shows something that upgrades without a
// kill do not show.
func (u *upgrading) killAt(ctx context.Context, w *fleet.Worker, k upgradeKill) error {
	first, why, err := u.killedRun(ctx, w, k, 0)
	if err != nil || first == nil {
		u.notKilled(k, why)
		return err
	}
	u.mu.Lock()
	u.killed++
	u.mu.Unlock()
	if len(first.Findings) == 0 {
		return u.recovered(ctx, w, k)
	}
	second, why, err := u.killedRun(ctx, w, k, 1)
	if err != nil || second == nil {
		u.notKilled(k, why)
		return err
	}
	control, why, err := u.run(ctx, w, k.lesson, lab.There, nil, 2)
	if err != nil || control == nil {
		u.notKilled(k, why)
		return err
	}
	for _, f := range u.inBoth(k.lesson, first.Findings, second.Findings) {
		if contains(control.Findings, f) {
			continue
		}
		f = judge.Killed(f, k.fault)
		f.Attempts, f.Reproduced = 2, 2
		u.found(f, k.lesson, second)
	}
	return nil
}

// killedRun makes one run, and returns what upgrades without a kill have not shown.
func (u *upgrading) killedRun(ctx context.Context, w *fleet.Worker, k upgradeKill, n uint64) (done *lab.Upgraded, why string, err error) {
	if done, why, err = u.run(ctx, w, k.lesson, lab.There, &k.fault, n); done == nil {
		return nil, why, err
	}
	u.mu.Lock()
	known := u.shown[k.lesson.Scenario.Name]
	u.mu.Unlock()
	done.Findings = slices.DeleteFunc(done.Findings, func(f judge.Finding) bool { return contains(known, f) })
	return done, "", nil
}

// recovered notes that a saved finding does not occur any longer.
func (u *upgrading) recovered(ctx context.Context, w *fleet.Worker, k upgradeKill) error {
	name := k.lesson.Scenario.Name
	if !slices.ContainsFunc(u.First[name], func(f fault.Fault) bool { return fault.Same(f, k.fault) }) {
		return nil
	}
	for n := range uint64(cleanKills - 1) {
		done, _, err := u.killedRun(ctx, w, k, n+1)
		if err != nil || done == nil || len(done.Findings) > 0 {
			return err
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.result.Recovered = append(u.result.Recovered, plan.Planned{Scenario: name, Fault: k.fault})
	return nil
}

// notKilled notes why nothing is known about a kill.
func (u *upgrading) notKilled(k upgradeKill, why string) {
	if why != "" {
		u.note(fmt.Sprintf("scenario %s: nothing is known about this kill during the upgrade: %s: %s", k.lesson.Scenario.Name, k.fault, why))
	}
}
