// Package devloop brings each saved file of a project into the running manager.
//
//	hint ─▶ snapshot ─▶ edit ─▶ round: generate ─▶ build ─▶ apply ─▶ restart ─▶ samples ─▶ one line
//	  ▲                                                                              │
//	  └──────────────── what a failed round has left to do ◀─────────────────────────┘
//
// The package decides what is done, and in which order. The stages themselves are an
// interface, so that these decisions are tested without a cluster.
package devloop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/devloop/edit"
)

// Stages are the steps of a round. Each returns after its work is done. A stage that fails
// must leave the running manager as it is.
type Stages interface {
	// Generate generates files from the code. It returns the files that it has written,
	// relative to the project's folder, with slashes.
	Generate(ctx context.Context) (written []string, err error)
	// Build builds the manager. The old process keeps running.
	Build(ctx context.Context) error
	// Apply reads the manifests, and applies what has changed. It reports whether the manager
	// has to be started again, because its arguments or its environment have changed.
	Apply(ctx context.Context) (restart bool, err error)
	// Restart ends the manager, starts it again, and waits until it is ready.
	Restart(ctx context.Context) error
	// Samples applies the samples that have changed.
	Samples(ctx context.Context) error
	// Running reports whether the manager is running.
	Running() bool
}

// ErrStale is the error of a stage that has ended because of another edit.
var ErrStale = errors.New("the files have changed again")

// A stage is one step of a round.
type stage struct {
	name string
	// run does the work of the stage, and removes this work from left if it succeeds.
	run func(ctx context.Context, left *edit.Edit) error
}

// Timing is the time that one stage of a round took.
type Timing struct {
	Stage string
	Took  time.Duration
}

// Report describes a round.
type Report struct {
	// Edit is the edit that the round was meant to bring into the manager.
	Edit edit.Edit
	// Left is the work that the round has not done, because a stage failed.
	Left edit.Edit
	// Stages lists the stages that ran, in their order. The last one failed if Err is set.
	Stages []Timing
	Took   time.Duration
	// Err is the error of the last stage.
	Err error
	// Stale reports whether the round ended because of another edit.
	Stale bool
}

// A round brings one edit into the manager.
type round struct {
	stages Stages
	// extend returns the additional work that is needed because files have been generated.
	extend func(written []string) (edit.Edit, error)
}

func (r round) run(ctx context.Context, e edit.Edit) Report {
	began := time.Now()
	report := Report{Edit: e, Left: e}
	for report.Err == nil {
		next := r.next(&report)
		if next == nil {
			break
		}
		started := time.Now()
		report.Err = next.run(ctx, &report.Left)
		report.Stages = append(report.Stages, Timing{next.name, time.Since(started)})
	}
	if report.Left.Empty() {
		report.Left = edit.Edit{}
	}
	report.Stale = errors.Is(report.Err, ErrStale)
	report.Took = time.Since(began)
	return report
}

// The names of the stages.
const (
	stageGenerate = "generate"
	stageBuild    = "build"
	stageApply    = "apply"
	stageRestart  = "restart"
	stageSamples  = "samples"
)

// next returns the stage that has to run next, or nil if nothing is left. The code is built
// before manifests are applied, so that code with a mistake changes nothing in the cluster.
// Samples follow the restart, because webhooks of the new code may have to accept them.
func (r round) next(report *Report) *stage {
	left := report.Left
	switch {
	case left.Generate:
		return &stage{stageGenerate, r.generate}
	case left.Build:
		return &stage{stageBuild, r.build}
	case left.Apply:
		return &stage{stageApply, r.apply}
	case left.Restart, !r.stages.Running() && !report.ran(stageRestart):
		return &stage{stageRestart, r.restart}
	case left.Samples:
		return &stage{stageSamples, r.samples}
	}
	return nil
}

func (r round) generate(ctx context.Context, left *edit.Edit) error {
	written, err := r.stages.Generate(ctx)
	if err != nil {
		return err
	}
	left.Generate = false
	more, err := r.extend(written)
	if err == nil {
		*left = left.And(more)
	}
	return err
}

func (r round) build(ctx context.Context, left *edit.Edit) error {
	err := r.stages.Build(ctx)
	if err == nil {
		left.Build, left.Module, left.Restart = false, false, true
	}
	return err
}

func (r round) apply(ctx context.Context, left *edit.Edit) error {
	restart, err := r.stages.Apply(ctx)
	if err == nil {
		left.Apply = false
	}
	left.Restart = left.Restart || restart
	return err
}

func (r round) restart(ctx context.Context, left *edit.Edit) error {
	err := r.stages.Restart(ctx)
	if err == nil {
		left.Restart = false
	}
	return err
}

func (r round) samples(ctx context.Context, left *edit.Edit) error {
	err := r.stages.Samples(ctx)
	if err == nil {
		left.Samples = false
	}
	return err
}

func (r *Report) ran(name string) bool {
	return slices.ContainsFunc(r.Stages, func(t Timing) bool { return t.Stage == name })
}

// mostFiles is the number of files that the line about a round names.
const mostFiles = 2

// String describes the round in one line, such as
// "ship.go: build 0.6 s, restart 0.3 s; 0.9 s in all".
func (r Report) String() string {
	var line strings.Builder
	line.WriteString(cmp.Or(names(r.Edit.Files), "start"))
	for i, t := range r.Stages {
		separator := ", "
		if i == 0 {
			separator = ": "
		}
		fmt.Fprintf(&line, "%s%s %s", separator, t.Stage, seconds(t.Took))
	}
	switch {
	case r.Stale:
		line.WriteString(" until the files changed again")
	case r.Err != nil:
		line.WriteString(" and failed")
	case len(r.Stages) > 1:
		fmt.Fprintf(&line, "; %s in all", seconds(r.Took))
	}
	return line.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// names returns the first few files, and the number of the remaining ones.
func names(files []string) string {
	if len(files) <= mostFiles {
		return strings.Join(files, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(files[:mostFiles], ", "), len(files)-mostFiles)
}
