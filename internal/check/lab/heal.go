package lab

import (
	"context"
	"slices"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/lab/interference"
	"github.com/koboshi-dev/koboshi/internal/check/rest"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// A stage is one attempt to help the world reach the state of the reference.
type stage struct {
	name   evidence.Stage
	do     func(*run, context.Context) error
	halves time.Duration // the time limit, in halves of the lesson's Patience
}

// stages are ordered from the mildest to the strongest, so a slow controller is first given more
// time. Later waits even longer, but only in a run that is to show whether a finding is more than a
// delay. TimeOut ends watches that would soon end anyway. A controller that needs a stage after TimeOut
// did not recover on its own.
var stages = []stage{
	{evidence.AtOnce, nil, 0},
	{evidence.Wait, nil, 2},
	{evidence.Later, nil, 0},
	{evidence.TimeOut, (*run).timeOut, 1},
	{evidence.Relist, (*run).relist, 1},
	{evidence.Restart, (*run).restart, 2},
	{evidence.Poke, (*run).poke, 1},
}

// heal tries the stages in order and records the first stage after which the world matches the
// reference. The fault ends before the first stage that helps the controller. If such a stage does
// not bring the world to the reference state, the cause is the controller, and not the fault.
func (r *run) heal(ctx context.Context, m *evidence.Step, step *scenario.Step) error {
	for _, s := range stages {
		period, needed := r.period(s.name)
		if !needed {
			continue
		}
		began := time.Now()
		early := r.injection.Applied()
		ok, err := r.help(ctx, s, m.Name, step)
		if err == nil && !ok && s.name == evidence.Wait && !early && r.injection.Applied() {
			ok, err = r.help(ctx, s, m.Name, step) // the fault came during the wait
		}
		if err != nil {
			return err
		}
		if ok {
			if m.Healed, m.Period = s.name, period; s.name == evidence.Later {
				m.Period = time.Since(began)
			}
			return nil
		}
		if s.name != evidence.Wait {
			continue
		}
		// The judge compares the reference with the state before healing intervenes.
		m.Rested, _ = r.lab.store.seen()
		if !r.injection.Applied() {
			return r.inconclusiveStep(m)
		}
	}
	m.Healed = evidence.Never
	return nil
}

// help performs one stage of healing, and reports whether the world then matches the
// reference.
func (r *run) help(ctx context.Context, s stage, name string, step *scenario.Step) (bool, error) {
	if s.name == evidence.AtOnce {
		return r.matches(ctx, name, step)
	}
	r.injection.End()
	r.log.Record(trace.Entry{Fault: &trace.Fault{What: string(s.name)}})
	if s.do != nil {
		if err := s.do(r, ctx); err != nil {
			return false, err
		}
	}
	patience := s.halves * r.lesson.Patience / 2
	switch s.name {
	case evidence.Wait: // helping while the controller waits for its own retry would prove nothing
		patience = max(patience, rest.RetryDue(r.log.Entries())-time.Since(r.log.Started()), r.injection.RetryDue())
	case evidence.Later:
		patience = r.care.Later
	}
	return r.reaches(ctx, name, step, patience)
}

// longestTimeout limits the timeouts that are worth waiting for. client-go's own watches time
// out after at most ten minutes.
const longestTimeout = 10 * time.Minute

// period reports whether a stage of healing makes sense in this run. For TimeOut, it also returns the
// longest timeout of those watches of the controller that get all objects again after a timeout.
func (r *run) period(s evidence.Stage) (longest time.Duration, needed bool) {
	switch s {
	case evidence.Later:
		return 0, r.care.Later > 0
	case evidence.TimeOut:
		r.controller.Proxies(func(p *apiproxy.Proxy) { longest = max(longest, p.Timeout(longestTimeout)) })
		return longest, longest > 0
	}
	return 0, true
}

// timeOut ends the watches that period considers. A run cannot wait for minutes, so the watches end
// early; the controller sees no other difference.
func (r *run) timeOut(context.Context) error {
	r.controller.Proxies(func(p *apiproxy.Proxy) { p.TimeOut(longestTimeout) })
	return nil
}

func (r *run) relist(context.Context) error {
	r.controller.Proxies(func(p *apiproxy.Proxy) { p.Expire(func(trace.Target) bool { return true }) })
	return nil
}

func (r *run) restart(context.Context) error {
	r.controller.KillAndStart()
	return nil
}

// poke annotates every object of the kinds that the controller reconciles, and removes the
// annotation.
func (r *run) poke(ctx context.Context) error {
	primary := r.lab.config.Subject.Primary
	found := r.lab.store.find(func(ref state.Ref, _ state.Object) bool { return slices.Contains(primary, ref.String()) })
	return r.lab.otherClient().Each(ctx, found, interference.Annotate)
}
