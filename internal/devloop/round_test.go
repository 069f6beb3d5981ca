package devloop

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/devloop/edit"
)

// stages records the stages that run. Those in fails fail.
type stages struct {
	ran      []string
	fails    string
	rearmed  bool // Apply asks for a restart
	stopped  bool
	building func(context.Context) error
}

var errFailed = errors.New("it failed")

func (s *stages) run(name string) error {
	s.ran = append(s.ran, name)
	if s.fails == name {
		return errFailed
	}
	return nil
}

func (s *stages) Generate(context.Context) ([]string, error) { return nil, s.run("generate") }

func (s *stages) Build(ctx context.Context) error {
	if s.building != nil {
		if err := s.building(ctx); err != nil {
			return err
		}
	}
	return s.run("build")
}

func (s *stages) Apply(context.Context) (bool, error) { return s.rearmed, s.run("apply") }

func (s *stages) Restart(context.Context) error {
	err := s.run("restart")
	s.stopped = s.stopped && err != nil
	return err
}

func (s *stages) Samples(context.Context) error { return s.run("samples") }

func (s *stages) Running() bool { return !s.stopped }

func TestARoundDoesWhatItsEditRequiresAndNoMore(t *testing.T) {
	all := edit.Edit{Generate: true, Build: true, Apply: true, Samples: true}
	for name, c := range map[string]struct {
		edit      edit.Edit
		stages    stages
		generated edit.Edit
		ran       string
		left      edit.Edit
	}{
		"a body":                       {edit: edit.Edit{Build: true}, ran: "build restart"},
		"a type":                       {edit: edit.Edit{Build: true, Generate: true}, generated: edit.Edit{Apply: true}, ran: "generate build apply restart"},
		"a type that changes no CRD":   {edit: edit.Edit{Build: true, Generate: true}, ran: "generate build restart"},
		"a marker with generated code": {edit: edit.Edit{Generate: true}, generated: edit.Edit{Build: true}, ran: "generate build restart"},
		"a manifest":                   {edit: edit.Edit{Apply: true}, ran: "apply"},
		"the manager's arguments":      {edit: edit.Edit{Apply: true}, stages: stages{rearmed: true}, ran: "apply restart"},
		"a sample":                     {edit: edit.Edit{Samples: true}, ran: "samples"},
		"go.mod":                       {edit: edit.Edit{Build: true, Generate: true, Module: true}, ran: "generate build restart"},
		"a file of another language":   {edit: edit.Edit{Restart: true}, ran: "restart"},
		"everything":                   {edit: all, ran: "generate build apply restart samples"},
		"a manifest after a crash":     {edit: edit.Edit{Apply: true}, stages: stages{stopped: true}, ran: "apply restart"},
		"a wrong marker":               {edit: all, stages: stages{fails: "generate"}, ran: "generate", left: all},
		"a compile error":              {edit: all, stages: stages{fails: "build"}, ran: "generate build", left: edit.Edit{Build: true, Apply: true, Samples: true}},
		"a manifest that is refused":   {edit: all, stages: stages{fails: "apply"}, ran: "generate build apply", left: edit.Edit{Apply: true, Restart: true, Samples: true}},
		"a crash at the start":         {edit: all, stages: stages{fails: "restart"}, ran: "generate build apply restart", left: edit.Edit{Restart: true, Samples: true}},
		"a crash at every start":       {edit: edit.Edit{Samples: true}, stages: stages{fails: "restart", stopped: true}, ran: "restart", left: edit.Edit{Samples: true}},
		"a sample that is refused":     {edit: all, stages: stages{fails: "samples"}, ran: "generate build apply restart samples", left: edit.Edit{Samples: true}},
		"what the last round has left": {edit: edit.Edit{Build: true}.And(edit.Edit{Apply: true}), ran: "build apply restart"},
		"nothing":                      {},
		"a change of the type meanwhile": {
			edit: edit.Edit{Build: true, Generate: true}, generated: edit.Edit{Generate: true, Apply: true}, ran: "generate generate build apply restart",
		},
	} {
		t.Run(name, func(t *testing.T) {
			generated := c.generated
			r := round{stages: &c.stages, extend: func([]string) (edit.Edit, error) {
				e := generated
				generated = edit.Edit{}
				return e, nil
			}}
			report := r.run(t.Context(), c.edit)
			if got := strings.Join(c.stages.ran, " "); got != c.ran {
				t.Errorf("ran %q, want %q", got, c.ran)
			}
			if diff := cmp.Diff(c.left, report.Left); diff != "" {
				t.Errorf("left (-want +got):\n%s", diff)
			}
			if failed := c.stages.fails != ""; failed != errors.Is(report.Err, errFailed) || len(report.Stages) != len(c.stages.ran) {
				t.Errorf("got %+v", report)
			}
		})
	}
}

func TestTheLineOfARoundHasTheTimeOfEachStage(t *testing.T) {
	timings := []Timing{{"build", 1234 * time.Millisecond}, {"restart", 300 * time.Millisecond}}
	for want, r := range map[string]Report{
		"a.go: build 1.23 s, restart 0.30 s; 1.53 s in all": {Edit: edit.Edit{Files: []string{"a.go"}}, Stages: timings, Took: 1534 * time.Millisecond},
		"a, b and 3 more: build 1.23 s and failed":          {Edit: edit.Edit{Files: []string{"a", "b", "c", "d", "e"}}, Stages: timings[:1], Err: errFailed},
		"a.go: build 1.23 s until the files changed again":  {Edit: edit.Edit{Files: []string{"a.go"}}, Stages: timings[:1], Err: ErrStale, Stale: true},
		"a.go: restart 0.30 s":                              {Edit: edit.Edit{Files: []string{"a.go"}}, Stages: timings[1:], Took: time.Second},
		"start: restart 0.30 s":                             {Stages: timings[1:]},
	} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func ran(r Report) (names []string) {
	for _, t := range r.Stages {
		names = append(names, t.Stage)
	}
	return slices.Clip(names)
}
