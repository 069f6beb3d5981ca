package devloop

import (
	"context"

	"github.com/koboshi-dev/koboshi/internal/devloop/edit"
)

// Loop runs a round for each edit, one at a time.
type Loop struct {
	Layout edit.Layout
	Stages Stages
	// Hints announces that files may have changed.
	Hints <-chan struct{}
	// Report is called after each round.
	Report func(Report)

	base   edit.Snapshot // what the rounds so far have brought into the manager
	hinted bool          // a hint arrived during a build
}

// Begin takes the snapshot with which the first edit is compared. Call it before anything
// reads the files of the project, so that no edit is missed.
func (l *Loop) Begin() (err error) {
	l.base, err = l.Layout.Take(nil)
	return err
}

// Generated accepts files that were generated before Run as no edit.
func (l *Loop) Generated(written []string) error {
	_, err := l.extend(written)
	return err
}

// Run runs a round for first, unless it is empty, and then one for each edit, until ctx ends. If
// a round fails, the next one also does what that round has left. Left is what was left before.
func (l *Loop) Run(ctx context.Context, first, left edit.Edit) error {
	if !first.Empty() {
		left = l.round(ctx, left.And(first))
	}
	for l.wait(ctx) {
		e, err := l.edit()
		if err != nil {
			return err
		}
		if !e.Empty() {
			left = l.round(ctx, left.And(e))
		}
	}
	return nil
}

// wait waits for a hint, and reports false when ctx has ended. Without a hint, a file may be
// half written.
func (l *Loop) wait(ctx context.Context) bool {
	if l.hinted {
		l.hinted = false
		return ctx.Err() == nil
	}
	select {
	case <-l.Hints:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// edit returns the difference between the files and those of the last edit.
func (l *Loop) edit() (edit.Edit, error) {
	now, err := l.Layout.Take(l.base)
	if err != nil {
		return edit.Edit{}, err
	}
	e := edit.Between(l.base, now)
	l.base = now
	return e, nil
}

// round runs a round and returns what it has left.
func (l *Loop) round(ctx context.Context, e edit.Edit) edit.Edit {
	report := round{stages: interruptible{l.Stages, l}, extend: l.extend}.run(ctx, e)
	if ctx.Err() == nil {
		l.Report(report)
	}
	return report.Left
}

// extend returns the edit since the last one. Generated files need no generating again.
func (l *Loop) extend(written []string) (edit.Edit, error) {
	now, err := l.Layout.Take(l.base)
	if err != nil {
		return edit.Edit{}, err
	}
	generated := l.base.With(now, written)
	e := edit.Between(l.base, generated)
	e.Generate = false
	e = e.And(edit.Between(generated, now))
	l.base = now
	return e, nil
}

// interruptible ends a build when the code changes during it.
type interruptible struct {
	Stages
	loop *Loop
}

// Build implements Stages.
func (i interruptible) Build(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	built := make(chan error, 1)
	go func() { built <- i.Stages.Build(ctx) }()
	for {
		select {
		case err := <-built:
			return err
		case <-i.loop.Hints:
			i.loop.hinted = true
			if i.loop.stale() {
				cancel()
				<-built
				return errStale
			}
		}
	}
}

// stale reports whether the code has changed since the last edit.
func (l *Loop) stale() bool {
	now, err := l.Layout.Take(l.base)
	if err != nil {
		return false
	}
	e := edit.Between(l.base, now)
	return e.Build || e.Generate
}
