package check

import (
	"slices"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/lab"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

func TestTheStatesThatAFindingComparesMustLast(t *testing.T) {
	sc := &scenario.Scenario{Steps: []scenario.Step{
		{Name: "b"}, {Name: "gone"}, {Name: "a"}, {Name: "both", Spares: []string{"a", "b"}}, {Name: "without-b", Spares: []string{"a"}, Quiet: scenario.Duration(time.Minute)},
	}}
	quiet := func(step string) (lasting []string) {
		for _, s := range lastingSteps(sc, step) {
			if s.Quiet >= scenario.Duration(15*time.Second) {
				lasting = append(lasting, s.Name)
			}
		}
		return lasting
	}
	if got, want := quiet("both"), []string{"b", "a", "both", "without-b"}; !slices.Equal(got, want) {
		t.Errorf("for both, %q last; want %q", got, want)
	}
	if got, want := quiet("without-b"), []string{"a", "both", "without-b"}; !slices.Equal(got, want) {
		t.Errorf("for without-b, %q last; want %q", got, want)
	}
	if got := lastingSteps(sc, "without-b")[4].Quiet; got != scenario.Duration(time.Minute) {
		t.Errorf("a longer quiet time became %s", got)
	}
	if sc.Steps[2].Quiet != 0 {
		t.Error("the scenario itself changed")
	}
}

func lastingSteps(sc *scenario.Scenario, step string) []scenario.Step {
	return lasting(sc, []judge.Finding{{Step: step}}, 15*time.Second).Steps
}

func TestANamespaceIsDeletedOnlyIfSomethingMayBeLeft(t *testing.T) {
	end := scenario.Step{Name: "end", Delete: &scenario.Delete{ObjectRef: scenario.ObjectRef{APIVersion: "v1", Kind: "Namespace", Name: "n"}}}
	world := func(objects map[string][]any) map[string]*fleet.Lesson {
		r := &judge.Reference{Steps: []judge.StepReference{{Name: "create", World: state.World{Objects: objects}}}}
		return map[string]*fleet.Lesson{"life": {Lesson: &lab.Lesson{Reference: r}}}
	}
	guarded := map[string]any{"metadata": map[string]any{"finalizers": []any{"x/clean"}}}
	for name, tt := range map[string]struct {
		steps   []scenario.Step
		lessons map[string]*fleet.Lesson
		want    bool
	}{
		"nothing was learnt":          {[]scenario.Step{end}, nil, false},
		"everything in one namespace": {[]scenario.Step{end}, world(map[string][]any{"Widget.x n/w": {map[string]any{}}, "ConfigMap n/c": {map[string]any{}}}), true},
		"a finalizer":                 {[]scenario.Step{end}, world(map[string][]any{"Widget.x n/w": {guarded}}), false},
		"a child without a namespace": {[]scenario.Step{end}, world(map[string][]any{"Widget.x n/w": {map[string]any{}}, "Role.x r": {map[string]any{}}}), false},
		"a child in another one":      {[]scenario.Step{end}, world(map[string][]any{"Widget.x n/w": {map[string]any{}}, "ConfigMap m/c": {map[string]any{}}}), false},
		"no namespace is deleted":     {[]scenario.Step{{Name: "create"}}, world(map[string][]any{"Widget.x n/w": {map[string]any{}}}), false},
	} {
		p := &pathRuns{check: &check{outcome: &outcome{lessons: tt.lessons}}}
		if got := p.isPointless(&scenario.Scenario{Steps: tt.steps}); got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestAFindingOfAPathIsNotFixedByARunThatLacksAStep(t *testing.T) {
	for name, tt := range map[string]struct {
		dropped []string
		want    int
	}{"complete": {nil, 1}, "a step was refused": {[]string{"no"}, 0}} {
		p := &pathRuns{check: newCheck(Options{})}
		p.clean(&fleet.Lesson{Lesson: &lab.Lesson{Scenario: &scenario.Scenario{Name: "a"}, Reference: &judge.Reference{}, Dropped: tt.dropped}})
		if got := len(p.result.Compared); got != tt.want {
			t.Errorf("%s: %d scenarios count as compared, want %d", name, got, tt.want)
		}
	}
}

func TestTheNamesOfChildrenAreTakenOneKindAfterTheOther(t *testing.T) {
	object := map[string]any{}
	r := &judge.Reference{Steps: []judge.StepReference{
		{Name: scenario.CreateStep, Creates: map[string]int{
			"ConfigMap default/ellen": 1, "ConfigMap default/*": 1, "ConfigMap default/kube-root-ca.crt": 1, "Secret default/ellen": 1,
			"Service default/ellen": 1, "ServiceAccount default/default": 1, "ServiceAccount default/ellen": 1, "Deployment.apps default/ellen": 1,
		}, World: state.World{Objects: map[string][]any{
			"ConfigMap default/ellen": {object}, "ConfigMap default/*": {object, object}, "ConfigMap default/kube-root-ca.crt": {object},
			"Secret default/ellen": {object}, "Service default/ellen": {object}, "ServiceAccount default/default": {object}, "ServiceAccount default/ellen": {object},
		}}},
		{Name: "later", Creates: map[string]int{"ConfigMap default/late": 1}, World: state.World{Objects: map[string][]any{"ConfigMap default/late": {object}}}},
	}}
	c := &check{outcome: &outcome{lessons: map[string]*fleet.Lesson{"ellen-life": {Lesson: &lab.Lesson{Reference: r}}}}}
	c.Paths = scenarios("ellen-two-namespaces", "ellen-two-names", "alma-two-names", "ellen-direct")
	var got []string
	for sc, child := range (&pathRuns{check: c}).takenNames() {
		got = append(got, sc.Name+": "+child)
	}
	slices.Sort(got)
	want := []string{"ellen-taken-name-configmap-ellen: ConfigMap default/ellen", "ellen-taken-name-service-ellen: Service default/ellen"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTheHealthOfPodsChangesOnlyIfThereArePods(t *testing.T) {
	ill := &scenario.Scenario{Steps: []scenario.Step{{Name: "crashing", PodHealth: scenario.PodsCrashing}}}
	with := func(objects ...string) *pathRuns {
		world := state.World{Objects: map[string][]any{}}
		for _, o := range objects {
			world.Objects[o] = []any{map[string]any{}}
		}
		r := &judge.Reference{Steps: []judge.StepReference{{Name: "create", World: world}}}
		return &pathRuns{check: &check{outcome: &outcome{lessons: map[string]*fleet.Lesson{"life": {Lesson: &lab.Lesson{Reference: r}}}}}}
	}
	if with("Pod default/ellen-*").hasNoPods(ill) {
		t.Error("a Pod is not seen")
	}
	if !with("PodDisruptionBudget.policy default/ellen", "ConfigMap default/Pod").hasNoPods(ill) {
		t.Error("something else is taken for a Pod")
	}
	if with("ConfigMap default/ellen").hasNoPods(&scenario.Scenario{Steps: []scenario.Step{{Name: "create"}}}) {
		t.Error("a path that needs no Pods is left out")
	}
}
