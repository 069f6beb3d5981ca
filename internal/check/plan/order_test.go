package plan

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// randomStory returns a story of random actions, which depend on the seed.
func randomStory(seed int64) *story {
	rng := rand.New(rand.NewPCG(uint64(seed), 1))
	s := newStory(fmt.Sprint("random-", seed))
	resources := []string{"widgets", "configmaps", "deployments", "pods", "widgets/status", "leases"}
	one := func() string { return resources[rng.IntN(len(resources))] }
	for range rng.IntN(4) {
		s.does("watch", target(one(), ""), nil)
		s.does("list", target(one(), ""), func(c *trace.Call) { c.Path = []string{"/x", "/x?resourceVersion=0"}[rng.IntN(2)] })
	}
	for i := range rng.IntN(6) {
		say := []scenario.Step{apply(""), remove(""), {}}[rng.IntN(3)]
		say.Name, say.WhileDown = fmt.Sprint("step", i), rng.IntN(5) == 0
		if i > 1 && rng.IntN(2) == 0 {
			say.SameAs = fmt.Sprint("step", i-2)
		}
		s.step(say)
		for range rng.IntN(12) {
			s.anything(rng, one(), fmt.Sprint("o", rng.IntN(3)))
		}
		if rng.IntN(3) == 0 {
			s.rest()
			s.repeats("update", one(), "o1")
		}
	}
	return s
}

// anything adds a random action of the controller or another client.
func (s *story) anything(rng *rand.Rand, resource, name string) {
	object := state.Object{"spec": map[string]any{"x": rng.IntN(5)}, "metadata": map[string]any{"resourceVersion": "1"}}
	switch rng.IntN(7) {
	case 0:
		s.commit(ref("widgets", name), object)
	case 1:
		s.repeats("patch", resource, name)
	case 2:
		s.does("get", target(resource, name), nil)
	case 3:
		s.does("put", trace.Target{}, func(c *trace.Call) { c.Endpoint, c.Path = "s3", "/"+name })
	case 4:
		if s.store[ref("configmaps", name)] != nil {
			s.writes("delete", "configmaps", name, nil)
		}
	case 5:
		s.writes("create", resource, name, object)
	default:
		s.writes("update", resource, name, object)
	}
}

// plans returns the plans of n random stories.
func plans(from, n int64) []Plan {
	var all []Plan
	for seed := from; seed < from+n; seed++ {
		all = append(all, Make(randomStory(seed).input()))
	}
	return all
}

func ids(queue []Planned) []string {
	var all []string
	for _, p := range queue {
		all = append(all, p.ID)
	}
	return all
}

func TestMakeIsDeterministicForAnyStory(t *testing.T) {
	faults := 0
	for seed := range int64(60) {
		first, second := Make(randomStory(seed).input()), Make(randomStory(seed).input())
		if diff := gocmp.Diff(first, second); diff != "" {
			t.Fatalf("seed %d (-first +second):\n%s", seed, diff)
		}
		seen := map[string]bool{}
		for _, f := range first.Faults {
			if seen[f.ID] {
				t.Fatalf("seed %d plans %s twice", seed, f)
			}
			seen[f.ID] = true
		}
		faults += len(first.Faults)
	}
	if faults < 1000 {
		t.Errorf("60 stories make only %d faults, too few for this test", faults)
	}
}

func TestOrderKeepsAllAndReachesEachPhaseSoon(t *testing.T) {
	for from := range int64(10) {
		all := plans(from*10, 5)
		var want []string
		for _, p := range all {
			want = append(want, ids(p.Faults)...)
		}
		queue := Order(all, uint64(from))
		seen := map[int]int{}
		for i, p := range queue {
			if _, ok := seen[p.Phase]; !ok {
				seen[p.Phase] = i
			}
		}
		for phase, first := range seen {
			if first >= 3+len(seen) {
				t.Errorf("from %d: phase %d begins after %d faults", from, phase, first)
			}
		}
		got := ids(queue)
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("from %d: %d faults in, %d out, or different ones", from, len(want), len(got))
		}
	}
}

func TestTheSeedDecidesOnlyAmongEquals(t *testing.T) {
	all := plans(0, 4)
	first, again, other := Order(all, 1), Order(all, 1), Order(all, 2)
	if !slices.Equal(ids(first), ids(again)) {
		t.Error("the same seed makes another order")
	}
	if slices.Equal(ids(first), ids(other)) {
		t.Error("another seed makes the same order")
	}
	for i := range first {
		a, b := first[i], other[i]
		if a.Phase != b.Phase || a.Scenario != b.Scenario || a.Cost != b.Cost {
			t.Fatalf("place %d is %s with one seed and %s with another", i, a, b)
		}
	}
}

func TestScenariosTakeTurns(t *testing.T) {
	var all []Plan
	for _, name := range []string{"a", "b", "c"} {
		p := Plan{}
		for i := range 4 {
			f := fault.Fault{Kind: fault.KillLost, Point: fault.Point{Step: name, Object: fmt.Sprint(i)}}
			p.Faults = append(p.Faults, Planned{ID: idOf(name, f), Scenario: name, Fault: f, Phase: 1})
		}
		all = append(all, p)
	}
	for i, p := range Order(all, 7) {
		if want := []string{"a", "b", "c"}[i%3]; p.Scenario != want {
			t.Errorf("place %d is of scenario %s, want %s", i, p.Scenario, want)
		}
	}
}

func TestWhatAnEarlierScenarioTriesComesLater(t *testing.T) {
	planned := func(scenario, step string) Planned {
		f := fault.Fault{Kind: fault.KillLost, Point: fault.Point{Step: step}}
		return Planned{ID: idOf(scenario, f), Scenario: scenario, Fault: f, Phase: 1}
	}
	queue := Order([]Plan{
		{Faults: []Planned{planned("one", "create"), planned("one", "scale")}},
		{Faults: []Planned{planned("two", "create"), planned("two", "delete")}},
	}, 3)
	if last := queue[3]; last.Scenario != "two" || last.Fault.Point.Step != "create" {
		t.Errorf("last is %s, want the fault that scenario one has, too", last)
	}
}

func TestSlowFaultsAreSpreadOverTheFirstQuarterOfAQueue(t *testing.T) {
	queue := make([]Planned, 0, 25)
	for i := range 20 {
		queue = append(queue, Planned{ID: fmt.Sprint("quick", i), Cost: 10})
	}
	for i := range 5 {
		queue = append(queue, Planned{ID: fmt.Sprint("slow", i), Cost: fault.Outage.Cost()})
	}
	var got []string
	for _, p := range SlowEarly(queue) {
		got = append(got, p.ID)
	}
	want := []string{
		"slow0", "quick0", "slow1", "quick1", "slow2", "quick2", "slow3", "quick3", "slow4", "quick4", "quick5", "quick6", "quick7", "quick8",
		"quick9", "quick10", "quick11", "quick12", "quick13", "quick14", "quick15", "quick16", "quick17", "quick18", "quick19",
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("the order (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(queue[20:], SlowEarly(queue[20:])); diff != "" {
		t.Errorf("a queue of slow faults alone (-want +got):\n%s", diff)
	}
}

func TestShardsPartitionThePlanAndKeepItsOrder(t *testing.T) {
	queue := Order(plans(0, 6), 1)
	place := map[string]int{}
	for i, p := range queue {
		place[p.ID] = i
	}
	for _, n := range []int{1, 2, 3, 7, 16} {
		seen := map[string]int{}
		for i := 1; i <= n; i++ {
			part := Shard(queue, i, n)
			if !slices.IsSortedFunc(part, func(a, b Planned) int { return cmp.Compare(place[a.ID], place[b.ID]) }) {
				t.Errorf("shard %d/%d is out of order", i, n)
			}
			if fair := len(queue) / n; len(part) < fair/2 || len(part) > 2*fair {
				t.Errorf("shard %d/%d has %d of %d", i, n, len(part), len(queue))
			}
			for _, p := range part {
				if other, ok := seen[p.ID]; ok {
					t.Errorf("%s is in shards %d and %d of %d", p, other, i, n)
				}
				seen[p.ID] = i
			}
		}
		if len(seen) != len(queue) {
			t.Errorf("%d shards have %d of %d", n, len(seen), len(queue))
		}
	}
}

func TestAFaultIsInTheSameShardWhateverElseIsPlanned(t *testing.T) {
	queue := Order(plans(0, 3), 1)
	half := queue[:len(queue)/2]
	for _, p := range Shard(half, 2, 3) {
		if !slices.Contains(ids(Shard(queue, 2, 3)), p.ID) {
			t.Errorf("%s changed its shard", p)
		}
	}
}
