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
		switch {
		case u.hasEnough():
		case u.hasTime():
			var why string
			why, err = u.killAt(ctx, w, kills[i])
			u.notKilled(kills[i], why)
		default:
			u.noTimeFor(kills[i])
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
		chosen := slices.DeleteFunc(slices.Clone(u.First[l.Scenario.Name]), func(f fault.Fault) bool { return !inUpgrade(f) })
		if len(l.Reference.Steps) == 0 {
			for _, f := range chosen {
				u.notKilled(upgradeKill{l, f}, "the new version cannot run the scenario in an empty cluster")
			}
			continue
		}
		if !u.Only {
			all := telling(u.kills[l.Scenario.Name])
			most := min(len(all), mostKills)
			u.capped += len(all) - most
			for _, f := range all[:most] {
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
	most := min(len(all), mostAllKills)
	u.capped += len(all) - most
	return all[:most]
}

// inUpgrade reports whether a fault is a kill during an upgrade. Other checks cannot inject it.
func inUpgrade(f fault.Fault) bool { return f.Point.Step == upgrade.Up }

// telling returns the kills in the order in which they are likely to show something: objects that are created
// or deleted often belong together with others, and a status only reports what is done.
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
	return kills
}

// hasTime reports whether a run, and those that confirm its finding, fit into the budget.
func (u *upgrading) hasTime() bool { return u.Budget <= 0 || u.left() > 3*u.longest }

// noTimeFor counts a kill that does not fit into the budget.
func (u *upgrading) noTimeFor(k upgradeKill) {
	u.mu.Lock()
	u.late++
	u.mu.Unlock()
	if u.Only {
		u.notKilled(k, "the budget leaves no time for it")
	}
}

// killAt kills the new version at one write, twice if the first run shows something that upgrades without a
// kill do not show. If nothing is known about the kill after that, killAt returns the reason.
func (u *upgrading) killAt(ctx context.Context, w *fleet.Worker, k upgradeKill) (why string, err error) {
	first, why, err := u.killedRun(ctx, w, k, 0)
	if err != nil || first == nil {
		return why, err
	}
	u.mu.Lock()
	u.killed++
	u.mu.Unlock()
	if len(first.Findings) == 0 {
		return u.recovered(ctx, w, k)
	}
	second, why, err := u.killedRun(ctx, w, k, 1)
	if err != nil || second == nil {
		return why, err
	}
	control, why, err := u.run(ctx, w, k.lesson, lab.There, nil, 2)
	if err != nil || control == nil {
		return why, err
	}
	why = "what one upgrade with this kill showed, another one did not show, or one without the kill showed as well"
	for _, f := range u.inBoth(k.lesson, first.Findings, second.Findings) {
		if contains(control.Findings, f) {
			continue
		}
		f = judge.Killed(f, k.fault)
		f.Attempts, f.Reproduced = 2, 2
		u.found(f, k.lesson, second)
		why = ""
	}
	return why, nil
}

// killedRun makes one run, and returns what upgrades without a kill have not shown.
func (u *upgrading) killedRun(ctx context.Context, w *fleet.Worker, k upgradeKill, n uint64) (done *lab.Upgraded, why string, err error) {
	if done, why, err = u.run(ctx, w, k.lesson, lab.There, &k.fault, n); done == nil {
		return nil, why, err
	}
	if done, why = ofKill(done); done == nil {
		return nil, why, nil
	}
	u.mu.Lock()
	known := u.shown[k.lesson.Scenario.Name]
	u.mu.Unlock()
	done.Findings = slices.DeleteFunc(done.Findings, func(f judge.Finding) bool { return contains(known, f) })
	return done, "", nil
}

// ofKill returns nil, and the reason, for a run in which the new version was not killed: what such a run
// shows has another cause.
func ofKill(done *lab.Upgraded) (*lab.Upgraded, string) {
	if !done.Killed {
		return nil, done.Inconclusive
	}
	return done, ""
}

// recovered notes that a saved finding does not occur any longer. If this is not certain, recovered returns
// the reason.
func (u *upgrading) recovered(ctx context.Context, w *fleet.Worker, k upgradeKill) (why string, err error) {
	name := k.lesson.Scenario.Name
	if !slices.ContainsFunc(u.First[name], func(f fault.Fault) bool { return fault.Same(f, k.fault) }) {
		return "", nil
	}
	for n := range uint64(cleanKills - 1) {
		done, why, err := u.killedRun(ctx, w, k, n+1)
		if err != nil || done == nil {
			return why, err
		}
		if len(done.Findings) > 0 {
			return "only some upgrades with this kill showed this: " + done.Findings[0].Sentence, nil
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.result.Recovered = append(u.result.Recovered, plan.Planned{Scenario: name, Fault: k.fault})
	return "", nil
}

// notKilled notes why nothing is known about a kill. A replay of the kill then has no result.
func (u *upgrading) notKilled(k upgradeKill, why string) {
	if why == "" {
		return
	}
	name := k.lesson.Scenario.Name
	u.note(fmt.Sprintf("scenario %s: nothing is known about this kill during the upgrade: %s: %s", name, k.fault, why))
	if u.Only {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.result.Report.NotApplied = append(u.result.Report.NotApplied, notRun(plan.Planned{Scenario: name, Fault: k.fault}, why))
	}
}

// leftOutKills returns notes about the kills that the plan or the budget has left out.
func (u *upgrading) leftOutKills() (notes []string) {
	if u.late > 0 {
		notes = append(notes, fmt.Sprintf("%s of the new version did not fit into the budget; increase --budget, or omit it", noun.Count(u.late, "kill")))
	}
	if u.capped > 0 {
		notes = append(notes, fmt.Sprintf("the new version was not killed at %s, because a check kills it at most %d times in each scenario, and %d times in all",
			noun.Count(u.capped, "further write"), mostKills, mostAllKills))
	}
	return notes
}
