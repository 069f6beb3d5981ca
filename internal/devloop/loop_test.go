package devloop

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/devloop/edit"
)

// project is a folder whose loop runs with recorded stages.
type project struct {
	t       *testing.T
	loop    *Loop
	hints   chan struct{}
	reports chan Report
}

func start(t *testing.T, s Stages, first edit.Edit) *project {
	t.Helper()
	return startAfter(t, s, first, func(*project) {})
}

// startAfter starts a loop, and calls meanwhile between Begin and Run.
func startAfter(t *testing.T, s Stages, first edit.Edit, meanwhile func(*project)) *project {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p := &project{t: t, hints: make(chan struct{}, 1), reports: make(chan Report)}
	p.loop = &Loop{Layout: edit.Layout{Dir: t.TempDir()}, Stages: s, Hints: p.hints, Report: func(r Report) {
		select {
		case p.reports <- r:
		case <-ctx.Done():
		}
	}}
	p.write("main.go", "package main\n")
	if err := p.loop.Begin(); err != nil {
		t.Fatal(err)
	}
	meanwhile(p)
	ended := make(chan error)
	go func() { ended <- p.loop.Run(ctx, first, edit.Edit{}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return p
}

// write replaces a file in one step.
func (p *project) write(name, text string) {
	p.t.Helper()
	at := filepath.Join(p.loop.Layout.Dir, name)
	err := os.MkdirAll(filepath.Dir(at), 0o755)
	if err == nil {
		temporary := filepath.Join(filepath.Dir(at), ".saving")
		if err = os.WriteFile(temporary, []byte(text), 0o600); err == nil {
			err = os.Rename(temporary, at)
		}
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// save writes a file, and gives a hint as a watcher does.
func (p *project) save(name, text string) {
	p.t.Helper()
	p.write(name, text)
	p.hint()
}

func (p *project) hint() {
	select {
	case p.hints <- struct{}{}:
	default:
	}
}

func (p *project) next() Report {
	p.t.Helper()
	select {
	case r := <-p.reports:
		return r
	case <-time.After(5 * time.Minute):
		p.t.Fatal("no round")
		return Report{}
	}
}

func (p *project) expect(stages string) Report {
	p.t.Helper()
	r := p.next()
	if got := strings.Join(ran(r), " "); got != stages {
		p.t.Errorf("the round %v ran %q, want %q", r.Edit.Files, got, stages)
	}
	return r
}

func TestEachEditHasARound(t *testing.T) {
	p := start(t, &stages{}, edit.Edit{Restart: true, Samples: true})
	p.expect("restart samples")
	p.save("main.go", "package main\nfunc main() {}\n")
	p.expect("build restart")
	p.hint() // without an edit, there is no round
	p.save("config/a.yaml", "a: 1\n")
	p.expect("apply")
	p.save("config/samples/a.yaml", "a: 1\n")
	p.expect("samples")
}

func TestAnEditDuringTheStartIsNotLost(t *testing.T) {
	p := startAfter(t, &stages{}, edit.Edit{}, func(p *project) {
		p.write("zz_generated.go", "package main\n")
		p.write("api.go", "package main\ntype T struct{}\n")
		if err := p.loop.Generated([]string{"zz_generated.go"}); err != nil {
			t.Fatal(err)
		}
	})
	if r := p.expect("generate build restart"); len(r.Edit.Files) != 1 || r.Edit.Files[0] != "api.go" {
		t.Errorf("the edit has the files %v", r.Edit.Files)
	}
}

func TestTheNextRoundDoesWhatAFailedOneHasLeft(t *testing.T) {
	s := &stages{fails: "build"}
	p := start(t, s, edit.Edit{})
	p.save("config/a.yaml", "a: 1\n")
	p.expect("apply")
	p.save("api.go", "package main\ntype T struct{}\n")
	if r := p.expect("generate build"); !errors.Is(r.Err, errFailed) {
		t.Errorf("got %v", r.Err)
	}
	p.write("config/a.yaml", "a: 2\n")
	p.save("config/b.yaml", "b: 1\n")
	p.expect("build") // still fails, before the manifests are applied
	s.fails = ""
	p.save("api.go", "package main\ntype T struct{}\nfunc f() {}\n")
	p.expect("build apply restart")
}

func TestABuildEndsWhenItsInputChanges(t *testing.T) {
	building := make(chan struct{})
	s := &stages{}
	s.building = func(ctx context.Context) error {
		s.building = nil
		close(building)
		<-ctx.Done()
		return ctx.Err()
	}
	p := start(t, s, edit.Edit{})
	p.save("main.go", "package main\nfunc a() {}\n")
	<-building
	p.save("config/a.yaml", "a: 1\n") // is no input of the build
	p.save("main.go", "package main\nfunc b() {}\n")
	if r := p.expect("build"); !r.Stale {
		t.Errorf("got %+v", r)
	}
	p.expect("build apply restart")
}

// generating writes a file when it generates.
type generating struct {
	stages
	write func()
}

func (g *generating) Generate(ctx context.Context) ([]string, error) {
	g.write()
	_, err := g.stages.Generate(ctx)
	return []string{"zz_generated.go", "config/crd.yaml"}, err
}

func TestGeneratedFilesAreAppliedInTheSameRoundAndAreNoEdit(t *testing.T) {
	g := &generating{}
	p := start(t, g, edit.Edit{})
	g.write = func() {
		p.write("zz_generated.go", "package main\nfunc (T) DeepCopy() {}\n")
		p.write("config/crd.yaml", "a: 1\n")
	}
	p.save("api.go", "package main\ntype T struct{}\n")
	p.expect("generate build apply restart")
	p.hint()
	p.save("main.go", "package main\nfunc main() {}\n")
	p.expect("build restart")
}

// asking waits in Apply until another edit.
type asking struct {
	stages
	loop  *Loop
	asked chan struct{}
}

func (a *asking) Apply(ctx context.Context) (bool, error) {
	until, done := a.loop.UntilEdit(ctx)
	defer done()
	a.asked <- struct{}{}
	<-until.Done()
	return false, context.Cause(until)
}

func TestAQuestionEndsWithTheNextEditOrWithTheLoop(t *testing.T) {
	a := &asking{asked: make(chan struct{})}
	p := start(t, a, edit.Edit{})
	a.loop = p.loop
	p.save("config/a.yaml", "a: 1\n")
	<-a.asked
	p.hint() // without an edit
	p.save("config/a.yaml", "a: 2\n")
	if r := p.expect("apply"); !r.Stale {
		t.Errorf("got %+v", r)
	}
	<-a.asked
}
