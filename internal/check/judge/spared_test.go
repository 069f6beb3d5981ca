package judge

import (
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// side returns two widgets side by side: each of them alone, then both, then only the first, both again,
// and only the second.
func side() *scenario.Scenario {
	apply := func(step, name string, spares ...string) scenario.Step {
		return scenario.Step{Name: step, Spares: spares, Apply: []scenario.Manifest{{Object: map[string]any{
			"apiVersion": "x/v1", "kind": "Widget", "metadata": map[string]any{"name": name, "namespace": "default"},
		}}}}
	}
	remove := func(step, name string, spares ...string) scenario.Step {
		return scenario.Step{Name: step, Spares: spares, Delete: &scenario.Delete{ObjectRef: scenario.ObjectRef{APIVersion: "x/v1", Kind: "Widget", Namespace: "default", Name: name}}}
	}
	return &scenario.Scenario{Name: "s", Steps: []scenario.Step{
		apply("b-alone", "b"), remove("b-gone", "b"), apply("a-alone", "a"), apply("both", "b", "a-alone", "b-alone"),
		remove("without-b", "b", "a-alone"), apply("both-again", "b"), remove("without-a", "a", "b-alone"),
	}}
}

// hand is a controller that handles two widgets.
type hand struct {
	// made and gone are called when a widget was applied or deleted, while the other exists or does
	// not exist.
	made, gone func(s *story, name string, besides bool)
}

func (h hand) tell(s *story) {
	apply := func(step, name string, besides bool) {
		s.step(step).puts(driver, `Widget.x default/`+name+` {"spec":{"n":1}}`)
		h.made(s, name, besides)
	}
	remove := func(step, name string, besides bool) {
		s.step(step).deletes(driver, "Widget.x default/"+name)
		h.gone(s, name, besides)
	}
	s.step("(start)")
	apply("b-alone", "b", false)
	remove("b-gone", "b", false)
	apply("a-alone", "a", false)
	apply("both", "b", true)
	remove("without-b", "b", true)
	apply("both-again", "b", true)
	remove("without-a", "a", true)
}

// shared is an object that both widgets need, with the content that one of them, or both, want.
func shared(who string) string { return `Role.x all {"rules":["` + who + `"]}` }

func own(name string) string { return `ConfigMap default/` + name + ` {"data":{"a":"1"}}` }

func phase(name, text string) string {
	return `Widget.x default/` + name + ` {"spec":{"n":1},"status":{"phase":"` + text + `"}}`
}

func TestWhatBelongsToOneResourceSurvivesTheOther(t *testing.T) {
	makes := func(s *story, name string, _ bool) { s.puts(one, own(name)) }
	removes := func(s *story, name string, _ bool) { s.deletes(one, "ConfigMap default/"+name) }
	other := map[string]string{"a": "b", "b": "a"}
	for name, tt := range map[string]struct {
		hand hand
		want string // verdicts and the steps
	}{
		"each has a child of its own": {hand{makes, removes}, ""},
		"a shared child is deleted with each": {hand{
			func(s *story, _ string, _ bool) { s.puts(one, shared("x")) },
			func(s *story, _ string, _ bool) { s.deletes(one, "Role.x all") },
		}, "COLLISION without-b"},
		"a shared child is deleted with the last": {hand{
			func(s *story, _ string, _ bool) { s.puts(one, shared("x")) },
			func(s *story, _ string, besides bool) {
				if !besides {
					s.deletes(one, "Role.x all")
				}
			},
		}, ""},
		"the second overwrites the child of the first": {hand{
			func(s *story, name string, _ bool) { s.puts(one, shared(name)) },
			func(s *story, name string, besides bool) {
				if besides {
					s.puts(one, shared(other[name]))
				} else {
					s.deletes(one, "Role.x all")
				}
			},
		}, "COLLISION both"},
		"a shared child combines both": {hand{
			func(s *story, name string, besides bool) {
				if besides {
					name = "a and b"
				}
				s.puts(one, shared(name))
			},
			func(s *story, name string, besides bool) {
				if besides {
					s.puts(one, shared(other[name]))
				} else {
					s.deletes(one, "Role.x all")
				}
			},
		}, ""},
		"the second reports a conflict": {hand{
			func(s *story, name string, besides bool) {
				if besides && name == "b" {
					s.puts(one, phase("b", "Conflict"))
				} else {
					s.puts(one, own(name)).puts(one, phase(name, "Ready"))
				}
			},
			func(s *story, name string, besides bool) {
				switch {
				case name == "a":
					s.deletes(one, "ConfigMap default/a").puts(one, own("b")).puts(one, phase("b", "Ready"))
				case !besides:
					s.deletes(one, "ConfigMap default/b")
				}
			},
		}, ""},
		"the second gets no child, and nothing says so": {hand{
			func(s *story, name string, besides bool) {
				if !besides || name == "a" {
					s.puts(one, own(name)).puts(one, phase(name, "Ready"))
				}
			},
			func(s *story, name string, besides bool) {
				if !besides || name == "a" {
					s.deletes(one, "ConfigMap default/"+name)
				}
			},
		}, "COLLISION both"},
		"the deletion of one changes the child of the other": {hand{makes, func(s *story, name string, besides bool) {
			removes(s, name, besides)
			if besides {
				s.puts(one, `ConfigMap default/`+other[name]+` {"data":{"a":""}}`)
			}
		}}, "COLLISION without-b"},
		"each child lists the peers of its resource": {hand{
			func(s *story, name string, besides bool) {
				s.puts(one, own(name))
				if besides {
					s.puts(one, `ConfigMap default/a {"data":{"a":"1","peer":"b"}}`).puts(one, `ConfigMap default/b {"data":{"a":"1","peer":"a"}}`)
				}
			},
			func(s *story, name string, besides bool) {
				removes(s, name, besides)
				if besides {
					s.puts(one, own(other[name]))
				}
			},
		}, ""},
		"what was left over is deleted later": {hand{makes, func(s *story, name string, besides bool) {
			if besides {
				removes(s, name, besides)
			}
		}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var runs []*evidence.Run
			for range 3 {
				s := tell(t)
				tt.hand.tell(s)
				runs = append(runs, s.end())
			}
			sc := side()
			r, err := NewReference(sc, runs)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range Faultless(r, runs, &subject.Subject{Primary: []string{"Widget.x"}}) {
				got = append(got, string(f.Verdict)+" "+f.Step)
			}
			if text := strings.Join(got, ", "); text != tt.want {
				t.Errorf("%q, want %q", text, tt.want)
			}
		})
	}
}
