package lab

import (
	"context"
	"time"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// A stage is what is tried until the world is as it should be.
type stage struct {
	name   evidence.Stage
	do     func(*run, context.Context) error
	halves time.Duration // of the patience that it takes
}

// stages go from the mildest to the strongest; a slow controller gets more time.
// Whoever needs more than time has not got up by himself.
var stages = []stage{
	{evidence.AtOnce, nil, 0},
	{evidence.Wait, nil, 2},
	{evidence.Relist, (*run).relist, 1},
	{evidence.Restart, (*run).restart, 2},
	{evidence.Poke, (*run).poke, 1},
}

// heal says what was needed until the world was that of the reference.
func (r *run) heal(ctx context.Context, m *evidence.Step, step *scenario.Step) error {
	for _, s := range stages {
		if s.name != evidence.AtOnce {
			r.log.Record(trace.Entry{Fault: &trace.Fault{What: string(s.name)}})
		}
		if s.do != nil {
			if err := s.do(r, ctx); err != nil {
				return err
			}
		}
		right := r.right
		if s.name != evidence.AtOnce {
			right = func(ctx context.Context, name string, step *scenario.Step) (bool, error) {
				return r.becomes(ctx, name, step, s.halves*r.lesson.Patience/2)
			}
		}
		ok, err := right(ctx, m.Name, step)
		if err != nil {
			return err
		}
		if ok {
			m.Healed = s.name
			return nil
		}
		if s.name != evidence.Wait {
			continue
		}
		// What is compared is the state before anybody helped.
		m.Rested, _ = r.lab.store.seen()
		if !r.knock.applied() {
			return r.differs(m)
		}
	}
	m.Healed = evidence.Never
	return nil
}

func (r *run) relist(context.Context) error {
	r.controller.proxies(func(p *apiproxy.Proxy) { p.Expire(func(trace.Target) bool { return true }) })
	return nil
}

func (r *run) restart(context.Context) error {
	r.controller.killAndStart()
	return nil
}
