package judge

import (
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// twice returns a scenario in which a widget is created in the form 2, and created in the form 1 and
// changed to 2.
func twice() *scenario.Scenario {
	ref := scenario.ObjectRef{APIVersion: "x/v1", Kind: "Widget", Namespace: "default", Name: "w"}
	apply := func(step string, n int) scenario.Step {
		return scenario.Step{Name: step, Apply: []scenario.Manifest{{Object: map[string]any{
			"apiVersion": "x/v1", "kind": "Widget", "metadata": map[string]any{"name": "w", "namespace": "default"}, "spec": map[string]any{"n": n},
		}}}}
	}
	return &scenario.Scenario{Name: "s", Steps: []scenario.Step{
		apply("changed", 2), {Name: "delete", Delete: &scenario.Delete{ObjectRef: ref}}, apply("create", 1),
		{Name: "change", SameAs: "changed", Patch: &scenario.Patch{ObjectRef: ref, Merge: []byte(`{"spec":{"n":2}}`)}},
	}}
}

// faultless returns the verdicts of three equal runs, each with its step.
func faultless(t *testing.T, sc *scenario.Scenario, tale func(*story)) string {
	t.Helper()
	var runs []*evidence.Run
	for range 3 {
		s := tell(t)
		tale(s)
		runs = append(runs, s.end())
	}
	r, err := NewReference(sc, runs)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range Faultless(r, runs, &subject.Subject{Primary: []string{"Widget.x"}}) {
		got = append(got, string(f.Verdict)+" "+f.Step)
	}
	return strings.Join(got, ", ")
}

func TestAChangedResourceIsLikeOneThatWasCreatedThatWay(t *testing.T) {
	const one1, one2 = `ConfigMap default/c {"data":{"n":"1","x":"1"}}`, `ConfigMap default/c {"data":{"n":"2"}}`
	ready := func(n, status string) string {
		return `Widget.x default/w {"spec":{"n":` + n + `},"status":{"conditions":[{"type":"Ready","status":"` + status + `"}]}}`
	}
	for name, tt := range map[string]struct {
		created1, created2, changed []string // the objects that the controller writes
		want                        string
	}{
		"the child is the same":              {[]string{one1}, []string{one2}, []string{one2}, ""},
		"the child is as before":             {[]string{one1}, []string{one2}, nil, "CREATION ONLY change"},
		"a key stays in a child":             {[]string{one1}, []string{one2}, []string{`ConfigMap default/c {"data":{"n":"2","x":"1"}}`}, "PATH DEPENDENT change"},
		"the change leads to a third value":  {[]string{one1}, []string{one2}, []string{`ConfigMap default/c {"data":{"n":"12"}}`}, "PATH DEPENDENT change"},
		"a child stays":                      {[]string{one1, `Role.x old {}`}, []string{one2}, []string{one2}, "PATH DEPENDENT change"},
		"a Job stays":                        {[]string{one1, `Job.batch default/old {}`}, []string{one2}, []string{one2}, ""},
		"a child is not added":               {[]string{one1}, []string{one2, `Role.x new {}`}, []string{one2}, "CREATION ONLY change"},
		"only a status differs":              {[]string{one1}, []string{one2}, []string{one2, `Widget.x default/w {"spec":{"n":2},"status":{"text":"updated"}}`}, ""},
		"the resource reports a failure":     {[]string{one1, ready("1", "True")}, []string{one2, ready("2", "True")}, []string{ready("2", "False")}, ""},
		"the resource reports no difference": {[]string{one1, ready("1", "True")}, []string{one2, ready("2", "True")}, []string{ready("2", "True")}, "CREATION ONLY change"},
	} {
		t.Run(name, func(t *testing.T) {
			got := faultless(t, twice(), func(s *story) {
				put := func(objects []string) {
					for _, text := range objects {
						s.puts(one, text)
					}
				}
				s.step("(start)").step("changed").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
				put(tt.created2)
				s.step("delete").deletes(driver, "Widget.x default/w")
				for ref := range s.now {
					s.deletes(one, ref.String()+" "+strings.TrimPrefix(ref.Namespace+"/"+ref.Name, "/"))
				}
				s.step("create").puts(driver, `Widget.x default/w {"spec":{"n":1}}`)
				put(tt.created1)
				s.step("change").puts(driver, `Widget.x default/w {"spec":{"n":2}}`)
				put(tt.changed)
			})
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestANamespaceCanBeDeletedWithAResourceInIt(t *testing.T) {
	widget := scenario.ObjectRef{APIVersion: "x/v1", Kind: "Widget", Namespace: "n", Name: "w"}
	sc := func() *scenario.Scenario {
		create := []scenario.Manifest{{Object: map[string]any{"apiVersion": "x/v1", "kind": "Widget", "metadata": map[string]any{"name": "w", "namespace": "n"}}}}
		return &scenario.Scenario{Name: "s", Steps: []scenario.Step{
			{Name: "create", Apply: create}, {Name: "delete", Delete: &scenario.Delete{ObjectRef: widget}}, {Name: "again", Apply: create},
			{Name: "end", Delete: &scenario.Delete{Keep: true, ObjectRef: scenario.ObjectRef{APIVersion: "v1", Kind: "Namespace", Name: "n"}}},
		}}
	}
	const bare, kept, leaving = `Widget.x n/w {"spec":{"n":1}}`, `Widget.x n/w {"metadata":{"finalizers":["x/clean"]},"spec":{"n":1}}`,
		`Widget.x n/w {"metadata":{"finalizers":["x/clean"],"deletionTimestamp":"2026-11-26T10:00:00Z"},"spec":{"n":1}}`
	for name, tt := range map[string]struct {
		guard string // who adds the finalizer
		end   func(s *story)
		want  string
	}{
		"all goes":                          {one, func(s *story) { s.deletes(one, "Widget.x n/w").deletes(one, "Role.x r") }, ""},
		"the resource keeps its finalizer":  {one, func(*story) {}, "STUCK TERMINATING end"},
		"another client sets the finalizer": {driver, func(*story) {}, ""},
		"a child outside is left":           {one, func(s *story) { s.deletes(one, "Widget.x n/w") }, "LEAK end"},
	} {
		t.Run(name, func(t *testing.T) {
			got := faultless(t, sc(), func(s *story) {
				s.step("(start)").puts(driver, `Namespace n {}`)
				s.step("create").puts(driver, bare).puts(tt.guard, kept).puts(one, `Role.x r {"rules":["x"]}`)
				s.step("delete").deletes(one, "Role.x r").deletes(one, "Widget.x n/w")
				s.step("again").puts(driver, bare).puts(tt.guard, kept).puts(one, `Role.x r {"rules":["x"]}`)
				s.step("end").puts(driver, leaving)
				tt.end(s)
			})
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestAnObjectGoesAfterItsDeletionIfOthersDo(t *testing.T) {
	widget := func(name string) scenario.ObjectRef {
		return scenario.ObjectRef{APIVersion: "x/v1", Kind: "Widget", Namespace: "n", Name: name}
	}
	create := func(name string) scenario.Step {
		return scenario.Step{Name: "create-" + name, Apply: []scenario.Manifest{{Object: map[string]any{
			"apiVersion": "x/v1", "kind": "Widget", "metadata": map[string]any{"name": name, "namespace": "n"}}}}}
	}
	const first, firstLeaving = `Widget.x n/w {"metadata":{"finalizers":["x/clean"]}}`,
		`Widget.x n/w {"metadata":{"finalizers":["x/clean"],"deletionTimestamp":"2026-11-26T10:00:00Z"}}`
	const odd, oddLeaving = `Widget.x n/odd {"metadata":{"finalizers":["x/clean"]}}`,
		`Widget.x n/odd {"metadata":{"finalizers":["x/clean"],"deletionTimestamp":"2026-11-26T10:00:00Z"}}`
	for name, tt := range map[string]struct {
		first, last func(s *story) // after each deletion
		want        string
	}{
		"the first one goes late": {func(*story) {}, func(s *story) { s.deletes(one, "Widget.x n/odd").deletes(one, "Widget.x n/w") }, ""},
		"both go":                 {func(s *story) { s.deletes(one, "Widget.x n/w") }, func(s *story) { s.deletes(one, "Widget.x n/odd") }, ""},
		"the odd one stays":       {func(s *story) { s.deletes(one, "Widget.x n/w") }, func(*story) {}, "STUCK TERMINATING delete-odd"},
		"both stay":               {func(*story) {}, func(*story) {}, ""},
		"it is still at work":     {func(s *story) { s.deletes(one, "Widget.x n/w") }, func(s *story) { s.run.Steps[len(s.run.Steps)-1].Restless = true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sc := &scenario.Scenario{Name: "s", Steps: []scenario.Step{
				create("w"), {Name: "delete-w", Delete: &scenario.Delete{ObjectRef: widget("w"), Keep: true}},
				create("odd"), {Name: "delete-odd", Delete: &scenario.Delete{ObjectRef: widget("odd"), Keep: true}},
			}}
			told := func() *evidence.Run {
				s := tell(t).step("(start)").step("create-w").puts(driver, first).step("delete-w").puts(driver, firstLeaving)
				tt.first(s)
				s.step("create-odd").puts(driver, odd).step("delete-odd").puts(driver, oddLeaving)
				tt.last(s)
				return s.end()
			}
			got := ""
			for _, f := range Undeleted(sc, []*evidence.Run{told(), told()}, nil) {
				got = string(f.Verdict) + " " + f.Step
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
