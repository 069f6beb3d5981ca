package devloop

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/koboshi-dev/koboshi/internal/devloop/edit"
)

// Loop runs a round for each edit, one at a time.
type Loop struct {
	Layout edit.Layout
	Stages Stages
	// Hints announces that files may have changed.
	Hints <-chan struct{}
	// Starting is called before each round, and Report after it. Starting may be nil.
	Starting func()
	Report   func(Report)

	base   edit.Snapshot // what the rounds so far have brought into the manager
	hinted bool          // a hint arrived during a round, and was received
}

// Begin takes the snapshot with which the first edit is compared. Call it before anything
// reads the files of the project, so that no edit is missed.
func (l *Loop) Begin() (err error) {
	l.base, err = l.Layout.Take(nil)
	return err
}

// Generated adds files that were generated before Run to the snapshot, so that they cause no edit.
// Changes that a person has made meanwhile are still an edit.
func (l *Loop) Generated(written []string) error {
	now, err := l.Layout.Take(l.base)
	if err == nil {
		l.base = l.base.With(now, written)
	}
	return err
}

// Follow makes the loop follow the module of the main package, too. Later edits are compared with
// the present state of its files.
func (l *Loop) Follow(main string) error {
	l.Layout.Main = main
	now, err := l.Layout.Take(l.base)
	if err == nil {
		l.base = now.With(l.base, slices.Collect(maps.Keys(l.base)))
	}
	return err
}

// Run runs a round for first, unless it is empty, and then one for each edit, until ctx ends. If a
// round fails, the next round also does the work that the failed round left undone. The parameter
// left is the work that was left undone before Run.
func (l *Loop) Run(ctx context.Context, first, left edit.Edit) error {
	l.hinted = true // nothing has watched the files since Begin
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

// edit returns the changes of the files since the last edit.
func (l *Loop) edit() (edit.Edit, error) {
	now, err := l.Layout.Take(l.base)
	if err != nil {
		return edit.Edit{}, err
	}
	e := edit.Between(l.base, now)
	l.base = now
	return e, nil
}

// round runs a round and returns the work that it left undone.
func (l *Loop) round(ctx context.Context, e edit.Edit) edit.Edit {
	if l.Starting != nil {
		l.Starting()
	}
	report := round{stages: interruptible{l.Stages, l}, extend: l.extend}.run(ctx, e)
	if ctx.Err() == nil {
		l.Report(report)
	}
	return report.Left
}

// extend returns the edit since the last one. Generated files do not have to be generated again.
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
	ctx, done := i.loop.until(ctx, func(e edit.Edit) bool { return e.Build || e.Generate })
	defer done()
	err := i.Stages.Build(ctx)
	if err != nil && errors.Is(context.Cause(ctx), ErrStale) {
		return ErrStale
	}
	return err
}

// UntilEdit returns a context that another edit ends, with the cause ErrStale. A stage may use the
// context while it waits for a person. The function done must be called before the stage ends.
func (l *Loop) UntilEdit(ctx context.Context) (until context.Context, done func()) {
	return l.until(ctx, func(e edit.Edit) bool { return !e.Empty() })
}

// until returns a context that is canceled at the first edit for which the parameter ends returns
// true.
func (l *Loop) until(ctx context.Context, ends func(edit.Edit) bool) (until context.Context, done func()) {
	until, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-l.Hints:
				l.hinted = true
				if now, err := l.Layout.Take(l.base); err == nil && ends(edit.Between(l.base, now)) {
					cancel(ErrStale)
				}
			case <-until.Done():
				return
			}
		}
	}()
	return until, func() {
		cancel(nil)
		<-ended
	}
}
