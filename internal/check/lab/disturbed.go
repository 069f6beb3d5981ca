package lab

import (
	"context"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/lab/election"
)

// disturbed performs one more run without a fault, but with disturbances that do not affect a
// correct controller: after each step, it restarts the controller, and then touches the
// controller's resources. The reference learns from this run which counters and histories such a
// disturbance may advance. If this run fails, the reference learns nothing from it, and the check
// continues.
//
// If the controller holds a Lease that is not released after a kill, disturbed does nothing,
// because the controller would wait for this Lease after each step. last is a run without
// disturbances.
func (l *Lab) disturbed(ctx context.Context, lesson *Lesson, last *evidence.Run, seed uint64) error {
	if lesson.Reference == nil || election.MustWait(last, lesson.Elections) {
		return nil
	}
	r := &run{
		lab: l, scenario: lesson.Scenario, window: lesson.Window, streams: max(lesson.Streams, 1),
		disturb: true, out: &evidence.Run{Seed: seed},
	}
	out, err := r.do(ctx)
	if err == nil {
		lesson.Reference.Disturb(out)
	}
	return ctx.Err()
}

// disturbAt restarts the controller and touches its resources after a step.
func (r *run) disturbAt(ctx context.Context, step string) (rested bool, err error) {
	r.controller.KillAndStart()
	rested, err = r.calm(ctx, step, r.timeout())
	if err != nil || !rested || len(r.lab.config.Subject.Webhooks) > 0 {
		return rested, err
	}
	if err := r.poke(ctx); err != nil {
		return false, err
	}
	return r.calm(ctx, step, r.timeout())
}
