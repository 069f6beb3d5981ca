package check

import (
	"encoding/json"
	"iter"
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// DefaultHorizon is the time for which each rest is watched, unless Options.Horizon sets
// another time. Most controllers that ask to be called again later do so after 15 s or
// less.
const DefaultHorizon = 15 * time.Second

// Rest identifies the rest that a scenario reaches after one of its steps.
type Rest struct{ Scenario, Step string }

// restsOf returns the rests that are worth watching, the most telling first: the first rest
// of each scenario, the rests of its final state, and then the others. Among rests that
// are reached by the same steps, only the first is watched.
func restsOf(scenarios []*scenario.Scenario) []Rest {
	var first, final, others []Rest
	seen := map[string]bool{}
	for _, sc := range scenarios {
		for path, step := range paths(sc) {
			if seen[path] {
				continue
			}
			seen[path] = true
			rest := Rest{sc.Name, step.Name}
			switch n := len(sc.Steps); {
			case step == &sc.Steps[0]:
				first = append(first, rest)
			case step == &sc.Steps[n-1] || step == &sc.Steps[n-2]:
				final = append(final, rest)
			default:
				others = append(others, rest)
			}
		}
	}
	return slices.Concat(first, final, others)
}

// paths yields each step of a scenario with a key for its rest. Two rests have equal keys if the
// same steps lead to them. Scenarios that end with the same deletion have the same key for their
// last rest, because nothing is left to reconcile after the deletion.
func paths(sc *scenario.Scenario) iter.Seq2[string, *scenario.Step] {
	return func(yield func(string, *scenario.Step) bool) {
		given := text(sc.Given) + text(sc.Endpoints)
		path := given
		for i := range sc.Steps {
			step := &sc.Steps[i]
			path += action(step)
			key := path
			if i > 0 && i == len(sc.Steps)-1 && step.Delete != nil {
				key = "last\n" + given + action(step)
			}
			if !yield(key, step) {
				return
			}
		}
	}
}

// action returns a text that identifies a step's action, without the step's name and conditions.
func action(s *scenario.Step) string {
	does := *s
	does.Name, does.SameAs, does.Spares, does.Expect, does.Quiet = "", "", nil, nil, 0
	return text(does)
}

func text(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error() // a scenario was read from JSON, so this does not happen
	}
	return string(data) + "\n"
}

const (
	// watchShare is the share of the budget, or of the estimated time for the faults, that
	// may be used for watching. Without a budget, minRounds rests can be watched in each
	// lab, however few faults there are.
	watchShare = 4
	minRounds  = 2
	// minHorizon is the shortest horizon to which a budget reduces the horizon. If even
	// this is too long, fewer rests are watched.
	minHorizon = 3 * time.Second
	// reaching estimates the time until the rest to be watched is reached.
	reaching = 2 * time.Second
)

// withinEstimate returns how many rests can be watched in a share of the time that the
// faults need.
func withinEstimate(horizon, faults time.Duration, rests, labs int) int {
	rounds := max(int(faults/watchShare/(horizon+reaching)), minRounds)
	return min(rests, rounds*labs)
}

// withinBudget returns how many rests can be watched, and for how long, if they share a
// part of the budget.
func withinBudget(horizon, budget time.Duration, rests, labs int) (each time.Duration, watched int) {
	if budget <= 0 || rests == 0 {
		return horizon, rests
	}
	rounds := (rests + labs - 1) / labs
	share := budget / watchShare
	each = min(horizon, share/time.Duration(rounds)-reaching)
	if least := min(horizon, minHorizon); each < least {
		each = least
		rounds = int(share / (each + reaching))
	}
	return each, min(rests, rounds*labs)
}

// share is the end of the time that a part of the check may take. A zero share has no end.
type share struct{ until time.Time }

// shareOf returns the share for watching, given the time that is left of the budget. A rest may be
// reached more slowly than estimated, so the number of rests alone does not limit the time.
func shareOf(left time.Duration, now time.Time) share {
	if left <= 0 {
		return share{}
	}
	return share{now.Add(left / watchShare)}
}

func (s share) over(now time.Time) bool { return !s.until.IsZero() && now.After(s.until) }
