package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

const (
	// startTimeout limits the first build and start of a loop, which may compile all
	// dependencies.
	startTimeout = time.Hour
	// turnTimeout limits the time to make one edit and to get it into the running manager.
	turnTimeout = 5 * time.Minute
	// stopTimeout is the time that a program has to end after SIGTERM.
	stopTimeout = 15 * time.Second
	// settle is the pause before each edit, so that the effects of the previous edit can end.
	settle = 2 * time.Second
)

// A loop makes edits in a copy of the operator, and gets each edit into the running manager.
type loop interface {
	name() string
	// start builds and starts everything, and returns after the first reconcile.
	start(ctx context.Context) error
	// follow makes an edit, and returns after the first reconcile by the new code.
	follow(ctx context.Context, e edit) (turn, error)
	stop()
}

// turn holds the times that one loop needed for one edit.
type turn struct {
	// Seconds is the time from just before the file is written to the first reconcile by the
	// new code.
	Seconds float64 `json:"seconds"`
	Stages  []stage `json:"stages"`
}

// stage is a part of a turn.
type stage struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// These names of stages also have a use in the code; all other names are only printed.
const (
	stageBuild   = "build"
	stageRestart = "restart"
)

// of returns the seconds of a stage, or zero if it did not run.
func (t turn) of(name string) (seconds float64) {
	for _, s := range t.Stages {
		if s.Name == name {
			seconds += s.Seconds
		}
	}
	return seconds
}

func (t turn) String() string {
	var stages []string
	for _, s := range t.Stages {
		stages = append(stages, fmt.Sprintf("%s %.2f", s.Name, s.Seconds))
	}
	return fmt.Sprintf("%.2f s (%s)", t.Seconds, strings.Join(stages, ", "))
}

// Names of the loops.
const (
	ours   = "koboshi"
	theirs = "kubebuilder"
)

// round holds the turns of both loops for each kind of edit, by the name of the loop.
type round map[edit]map[string]turn

// measure runs both loops in alternation. The two loops take turns going first.
func (b *bench) measure(ctx context.Context) (rounds []round, err error) {
	loops := []loop{&koboshi{bench: b}, &kubebuilder{bench: b}}
	for _, l := range loops {
		fmt.Fprintf(os.Stderr, "building and starting the operator with %s\n", l.name())
		defer l.stop()
		if err := begin(ctx, l); err != nil {
			return nil, fmt.Errorf("starting the operator with %s: %w", l.name(), err)
		}
	}
	for n := range b.rounds + 1 {
		r := round{}
		for k, e := range edits {
			r[e] = map[string]turn{}
			for i := range loops {
				l := loops[(i+k+n)%len(loops)]
				t, err := next(ctx, l, e)
				if err != nil {
					return nil, fmt.Errorf("round %d, %s, %s: %w", n, e, l.name(), err)
				}
				r[e][l.name()] = t
				fmt.Fprintf(os.Stderr, "round %d of %d, %s, %s: %s\n", n, b.rounds, e, l.name(), t)
			}
		}
		if n > 0 { // the first round only fills the caches
			rounds = append(rounds, r)
		}
	}
	return rounds, nil
}

func begin(ctx context.Context, l loop) error {
	ctx, cancel := limit(ctx, startTimeout)
	defer cancel()
	return l.start(ctx)
}

func next(ctx context.Context, l loop, e edit) (turn, error) {
	ctx, cancel := limit(ctx, turnTimeout)
	defer cancel()
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return turn{}, context.Cause(ctx)
	}
	return l.follow(ctx, e)
}

func limit(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, within, fmt.Errorf("not done within %s", within))
}
