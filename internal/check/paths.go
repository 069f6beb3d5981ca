package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

const (
	// pathShare is the part of the budget in which paths are run: a sixth. Without a budget, it is
	// longestPaths.
	pathShare    = 6
	longestPaths = 4 * time.Minute
)

// pathVerdicts lists the verdicts that a path may show. Two resources with the same spec may need
// permissions, or claim something outside the cluster, that one does not, so the others prove nothing.
var pathVerdicts = []judge.Verdict{judge.Collision, judge.TakenOver, judge.Crashed, judge.PathDependent, judge.StuckTerminating, judge.Leak, judge.CreationOnly}

// pathRuns runs the paths, and counts them.
type pathRuns struct {
	*check
	until time.Time // no path begins later
	all   []*scenario.Scenario
	taken map[*scenario.Scenario]string // the paths with a taken name, and the name of the child

	mu   sync.Mutex
	run  int
	left []string // scenarios that were not run, with the reason
}

// tryPaths runs the paths without faults, the most telling first. What a path shows is confirmed by
// more runs, in which the states that were compared must last for the horizon.
func (c *check) tryPaths(ctx context.Context) error {
	if len(c.Paths) == 0 || c.hasEnough() {
		return nil
	}
	p := &pathRuns{check: c}
	share := longestPaths
	if c.Budget > 0 {
		share = min(c.Budget/pathShare, c.left()/2)
	}
	p.until = time.Now().Add(share)
	p.taken = p.takenNames()
	p.all = scenario.ByTurns([][]*scenario.Scenario{c.Paths, slices.SortedFunc(maps.Keys(p.taken), byName)})
	c.Observer.Phase("running " + noun.Count(len(p.all), "path") + " without faults")
	c.Observer.Total(len(p.all))
	err := c.fleet.Each(ctx, len(p.all), func(ctx context.Context, w *fleet.Worker, i int) error {
		began := time.Now()
		err := p.try(ctx, w, p.all[i])
		c.Observer.Done("", time.Since(began))
		return err
	})
	p.describe()
	return err
}

// mostTaken is the number of children whose name is taken, for each kind of resource.
const mostTaken = 2

// takenNames makes paths in which an object of somebody else has the name of a child. Only a scenario without
// faults shows which children there are.
func (p *pathRuns) takenNames() map[*scenario.Scenario]string {
	found := map[*scenario.Scenario]string{}
	isKnown := func(kind string) bool { return scenario.TakenKinds[kind] != nil }
	for _, pair := range p.Paths {
		title, _ := strings.CutSuffix(pair.Name, scenario.PairEnd)
		l := p.lessons[title+"-life"]
		if l == nil || l.Reference == nil {
			continue
		}
		n := 0
		for _, child := range l.Reference.Children(isKnown) {
			if sc := scenario.Taken(pair, child); sc != nil && n < mostTaken {
				n++
				found[sc] = child
			}
		}
	}
	return found
}

func byName(a, b *scenario.Scenario) int { return strings.Compare(a.Name, b.Name) }

// try runs one path, and confirms what it shows.
func (p *pathRuns) try(ctx context.Context, w *fleet.Worker, sc *scenario.Scenario) error {
	child := p.taken[sc]
	if time.Now().Add(p.pace.estimate(len(sc.Steps))).After(p.until) {
		p.leave(sc, "the time for paths is over")
		return nil
	}
	if p.isPointless(sc) {
		p.leave(sc, "the controller sets no finalizers, and makes nothing outside of the namespace of the resource")
		return nil
	}
	if p.hasNoPods(sc) {
		p.leave(sc, "the controller makes no Pods")
		return nil
	}
	sc = p.amended(sc)
	l, err := w.LearnPath(ctx, sc, p.Seed)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		p.leave(sc, strings.TrimPrefix(err.Error(), "scenario "+sc.Name+", "))
		return nil
	}
	p.count(l)
	for _, refused := range l.Dropped {
		p.note("left out: " + refused)
	}
	found := suspects(l)
	if p.isTooSmallFor(l) {
		return nil // what was found may only be due to the profile
	}
	if len(found) == 0 {
		p.clean(l)
		return nil
	}
	again, err := w.LearnPath(ctx, lasting(l.Scenario, found, max(p.Horizon, minHorizon)), p.Seed+1)
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		p.note(fmt.Sprintf("scenario %s: what it showed could not be confirmed: %v", sc.Name, err))
		return nil
	}
	p.tally.learnt(again.Runs)
	p.confirm(l, again, child)
	return nil
}

// clean records that a path showed nothing, so that its findings of an earlier check count as fixed, unless a
// step is missing.
func (p *pathRuns) clean(l *fleet.Lesson) {
	p.check.mu.Lock()
	defer p.check.mu.Unlock()
	if l.Reference != nil && len(l.Dropped) == 0 {
		p.result.Compared = append(p.result.Compared, l.Scenario.Name)
	}
}

// confirm reports those findings of a path that its repetition shows as well. If the name of a child was
// taken, everything but a panic is a remark: many controllers adopt such an object on purpose.
func (p *pathRuns) confirm(l, again *fleet.Lesson, child string) {
	p.addScenario(again.Scenario) // a replay has the longer rests as well
	for _, f := range suspects(l) {
		i := slices.IndexFunc(again.Findings, func(o judge.Finding) bool { return o.ID == f.ID })
		if i < 0 {
			p.note(fmt.Sprintf("scenario %s, step %s: %s; this is not a finding, because a repetition did not show it", l.Scenario.Name, f.Step, f.Sentence))
			continue
		}
		confirmed := again.Findings[i]
		confirmed.Attempts, confirmed.Reproduced = l.Runs+again.Runs, showing(f, l)+showing(again.Findings[i], again)
		if child != "" {
			confirmed.Input = "another " + child + " existed before"
		}
		if confirmed.Verdict.IsRemark() {
			confirmed.Seed = p.Seed
			p.check.mu.Lock()
			p.result.Report.Add(confirmed)
			p.check.mu.Unlock()
			continue
		}
		p.faultless(confirmed, again)
	}
}

// showing returns the number of runs that show a finding: all, unless they cannot be compared.
func showing(f judge.Finding, l *fleet.Lesson) int {
	if l.Reference == nil {
		return f.Reproduced
	}
	return l.Runs
}

// suspects returns the findings of a path that may be reported.
func suspects(l *fleet.Lesson) (found []judge.Finding) {
	for _, f := range l.Findings {
		if slices.Contains(pathVerdicts, f.Verdict) {
			found = append(found, f)
		}
	}
	return found
}

// lasting returns a copy of a scenario in which the steps that findings compare must rest for the
// horizon: a rest that was only a pause proves nothing.
func lasting(sc *scenario.Scenario, found []judge.Finding, horizon time.Duration) *scenario.Scenario {
	copied := *sc
	copied.Steps = slices.Clone(sc.Steps)
	compared := map[string]bool{}
	for i, step := range copied.Steps {
		if !slices.ContainsFunc(found, func(f judge.Finding) bool { return f.Step == step.Name }) {
			continue
		}
		compared[step.Name], compared[step.SameAs] = true, true
		for _, spared := range step.Spares {
			compared[spared] = true
		}
		if i > 0 {
			compared[copied.Steps[i-1].Name] = true
		}
	}
	for i := range copied.Steps {
		if step := &copied.Steps[i]; compared[step.Name] {
			step.Quiet = max(step.Quiet, scenario.Duration(horizon))
		}
	}
	return &copied
}

// amended returns a copy of a path with what the check has learnt about the controller at rest: the
// fields that are written regularly, and the longest quiet time of a step.
func (p *pathRuns) amended(sc *scenario.Scenario) *scenario.Scenario {
	copied := *sc
	copied.Ignore = slices.Clone(sc.Ignore)
	p.check.mu.Lock()
	defer p.check.mu.Unlock()
	for _, l := range p.lessons {
		for _, line := range l.Scenario.Ignore {
			if !slices.Contains(copied.Ignore, line) {
				copied.Ignore = append(copied.Ignore, line)
			}
		}
		copied.Rest.Round = max(copied.Rest.Round, l.Scenario.Rest.Round)
		copied.Rest.Timeout = max(copied.Rest.Timeout, l.Scenario.Rest.Timeout)
		for _, step := range l.Scenario.Steps {
			copied.Rest.Quiet = max(copied.Rest.Quiet, step.Quiet)
		}
	}
	slices.Sort(copied.Ignore)
	return &copied
}

// isPointless reports whether a path deletes a namespace although, in all other scenarios, the controller
// neither set a finalizer nor made an object in another namespace. Then nothing can block the deletion, and
// nothing is left.
func (p *pathRuns) isPointless(sc *scenario.Scenario) bool {
	last := sc.Steps[len(sc.Steps)-1]
	if last.Delete == nil || last.Delete.Kind != "Namespace" {
		return false
	}
	p.check.mu.Lock()
	defer p.check.mu.Unlock()
	learnt := false
	for _, l := range p.lessons {
		if l.Reference == nil {
			continue
		}
		learnt = true
		if l.Reference.LeavesNamespace() {
			return false
		}
	}
	return learnt
}

// hasNoPods reports whether a path changes the health of Pods although there were none in the other scenarios.
func (p *pathRuns) hasNoPods(sc *scenario.Scenario) bool {
	if !slices.ContainsFunc(sc.Steps, func(s scenario.Step) bool { return s.PodHealth != "" }) {
		return false
	}
	p.check.mu.Lock()
	defer p.check.mu.Unlock()
	for _, l := range p.lessons {
		if l.Reference != nil && l.Reference.HasPods() {
			return false
		}
	}
	return true
}

func (p *pathRuns) count(l *fleet.Lesson) {
	p.tally.learnt(l.Runs)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run++
}

func (p *pathRuns) leave(sc *scenario.Scenario, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = append(p.left, sc.Name+": "+why)
}

// describe notes how many paths were run, and which were left out.
func (p *pathRuns) describe() {
	p.note(fmt.Sprintf("%s of %d run without faults", noun.Count(p.run, "path"), len(p.all)))
	slices.Sort(p.left)
	for _, left := range p.left {
		p.note("path left out: " + left)
	}
}
