package state

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// learnSteps learns from three runs; values holds, for each step, the values of the objects
// a and b in each run.
func learnSteps(t *testing.T, values map[string][3][2]int) *Mask {
	runs := []map[string]Snapshot{{}, {}, {}}
	for step, all := range values {
		for i, v := range all {
			runs[i][step] = two(t, v[0], v[1])
		}
	}
	return Learn(runs, nil, nil)
}

func two(t *testing.T, a, b int) Snapshot {
	return parse(t, configMap("a", fmt.Sprintf(`},"spec":{"replicas":%d}}`, a)), configMap("b", fmt.Sprintf(`},"spec":{"replicas":%d}}`, b)))
}

func TestARuleIsOnlyAsWideAsTheEvidence(t *testing.T) {
	same := [3][2]int{{1, 1}, {1, 1}, {1, 1}}
	onlyA, both := [3][2]int{{1, 1}, {2, 1}, {1, 1}}, [3][2]int{{1, 1}, {2, 1}, {1, 2}}
	for name, tt := range map[string]struct {
		values map[string][3][2]int
		want   []string // the differences if a and b have other values, by step and object
		unseen []string
	}{
		"no difference": {map[string][3][2]int{"one": same, "two": same, "three": same},
			[]string{"one a", "one b", "three a", "three b", "two a", "two b"}, nil},
		"one object after one step": {map[string][3][2]int{"one": onlyA, "two": same, "three": same},
			[]string{"one b", "three a", "three b", "two a", "two b"}, []string{"spec.replicas of ConfigMap default/a after step one"}},
		"one object after two steps": {map[string][3][2]int{"one": onlyA, "two": onlyA, "three": same},
			[]string{"one b", "three b", "two b"}, []string{"spec.replicas of ConfigMap default/a"}},
		"two objects after one step": {map[string][3][2]int{"one": both, "two": same, "three": same},
			nil, []string{"spec.replicas of every ConfigMap"}},
		"two objects after different steps": {map[string][3][2]int{"one": onlyA, "two": {{1, 1}, {1, 2}, {1, 3}}, "three": same},
			nil, []string{"spec.replicas of every ConfigMap"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := learnSteps(t, tt.values)
			var got []string
			for step := range tt.values {
				want := m.CanonicalAfter(step, two(t, 1, 1))
				for _, d := range want.Diff(m.CanonicalAfter(step, two(t, 7, 7))) {
					got = append(got, step+" "+d.Object[len("ConfigMap default/"):])
				}
			}
			slices.Sort(got)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tt.unseen, m.Unseen()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAnObjectThatOnlySomeRunsHaveIsComparedAfterOtherSteps(t *testing.T) {
	with, without := parse(t, configMap("a", "}}")), Snapshot{}
	m := Learn([]map[string]Snapshot{{"one": with, "two": with}, {"one": without, "two": with}, {"one": with, "two": with}}, nil, nil)
	if d := m.CanonicalAfter("one", with).Diff(m.CanonicalAfter("one", without)); len(d) != 0 {
		t.Errorf("after step one: %+v", d)
	}
	if d := m.CanonicalAfter("two", with).Diff(m.CanonicalAfter("two", without)); len(d) != 1 {
		t.Errorf("after step two: %+v", d)
	}
	if d := m.Canonical(with).Diff(m.Canonical(without)); len(d) != 0 {
		t.Errorf("if the step is unknown: %+v", d)
	}
}

func TestFieldsOfStatusAndTheOrderOfAListAreNotUnseen(t *testing.T) {
	run := func(n int, list string) Snapshot {
		return parse(t, configMap("a", fmt.Sprintf(`,"annotations":{"n":"%d"}},"status":{"n":%d},"items":%s}`, n, n, list)))
	}
	m := learn(run(1, `["a","b"]`), run(2, `["b","a"]`), run(3, `["a","b"]`))
	if got := m.Unseen(); len(got) != 0 || len(m.Fields()) != 3 {
		t.Errorf("%q of %q", got, m.Fields())
	}
}
