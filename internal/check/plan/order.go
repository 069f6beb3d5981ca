package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
)

// known is added to the rank of a fault if an earlier scenario has the same fault in a step
// of the same name. Scenarios often begin alike. If the budget runs out, repeated faults
// should be left out first, because an earlier scenario already tries them.
const known = 20

// turn is the number of faults that are taken from the first phase for each fault from
// another phase. The first phase finds the most, but a limited budget has to reach all
// phases.
const turn = 3

// Order merges the plans of all scenarios into one queue that alternates between the
// phases. Within a phase, the likely faults come first, and the scenarios take turns.
// Within a scenario, the cheap faults come first. The seed shuffles only faults of the
// same phase, rank, scenario and cost.
func Order(plans []Plan, seed uint64) []Planned {
	groups := map[[2]int]map[string][]Planned{} // by phase and rank, then scenario
	var turns []string
	seen := map[string]bool{}
	for _, plan := range plans {
		for _, p := range plan.Faults {
			if !slices.Contains(turns, p.Scenario) {
				turns = append(turns, p.Scenario)
			}
			key := [2]int{p.Phase, p.Rank}
			like := regardless(p.Fault)
			if seen[like] {
				key[1] += known
			}
			seen[like] = true
			if groups[key] == nil {
				groups[key] = map[string][]Planned{}
			}
			groups[key][p.Scenario] = append(groups[key][p.Scenario], p)
		}
	}
	phases := map[int][]Planned{}
	for _, key := range sortedKeys(groups) {
		phases[key[0]] = append(phases[key[0]], byTurns(groups[key], turns, seed)...)
	}
	return interleave(phases)
}

// interleave takes one fault from each phase in turn, but several from the first phase.
func interleave(phases map[int][]Planned) (queue []Planned) {
	order := slices.Sorted(maps.Keys(phases))
	for len(phases) > 0 {
		for i, phase := range order {
			n := 1
			if i == 0 {
				n = turn
			}
			n = min(n, len(phases[phase]))
			queue = append(queue, phases[phase][:n]...)
			if phases[phase] = phases[phase][n:]; len(phases[phase]) == 0 {
				delete(phases, phase)
			}
		}
	}
	return queue
}

// slow is the cost of faults, in tenths of a second, that mostly wait: for the end of an outage, or until
// a Lease expires.
const slow = 100

// IsSlow reports whether the run mostly waits because of the fault.
func (p Planned) IsSlow() bool { return p.Cost >= slow }

// SlowEarly spreads the slow faults evenly over the first quarter of the others. In Order, they come last,
// so that at the end of a check, one lab would wait while all others have nothing left to do. If the time
// may not suffice for the whole queue, it should stay as it is: in the time of one slow fault, a lab runs
// ten others.
func SlowEarly(queue []Planned) (early []Planned) {
	var waiting, others []Planned
	for _, p := range queue {
		if p.IsSlow() {
			waiting = append(waiting, p)
		} else {
			others = append(others, p)
		}
	}
	begun := 0
	for i, p := range others {
		for begun < len(waiting) && begun*len(others) <= 4*i*len(waiting) {
			early = append(early, waiting[begun])
			begun++
		}
		early = append(early, p)
	}
	return append(early, waiting[begun:]...)
}

// regardless returns a key that is the same for equal faults of different scenarios.
func regardless(f fault.Fault) string {
	data, err := json.Marshal(f)
	if err != nil {
		panic(fmt.Sprintf("encoding a fault: %v", err)) // this cannot happen: a fault contains only strings and numbers
	}
	return string(data)
}

func sortedKeys(groups map[[2]int]map[string][]Planned) [][2]int {
	keys := make([][2]int, 0, len(groups))
	for key := range groups {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b [2]int) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	})
	return keys
}

// byTurns takes one fault of each scenario in turn, until none is left.
func byTurns(group map[string][]Planned, turns []string, seed uint64) []Planned {
	longest := 0
	for _, list := range group {
		slices.SortStableFunc(list, func(a, b Planned) int {
			return cmp.Or(cmp.Compare(a.Cost, b.Cost), cmp.Compare(mix(seed, a.ID), mix(seed, b.ID)))
		})
		longest = max(longest, len(list))
	}
	var queue []Planned
	for i := range longest {
		for _, scenario := range turns {
			if list := group[scenario]; i < len(list) {
				queue = append(queue, list[i])
			}
		}
	}
	return queue
}

// Shard returns the i-th of n parts, counted from 1, in the order of p. Which part a
// fault belongs to depends only on its ID. So even if machines have learnt slightly
// different plans, no fault is left out or run twice.
func Shard(p []Planned, i, n int) []Planned {
	if n <= 1 {
		return p
	}
	var part []Planned
	for _, planned := range p {
		if mix(0, planned.ID)%uint64(n) == uint64(i-1) {
			part = append(part, planned)
		}
	}
	return part
}
