package lab

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/check/upgrade"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

const (
	// together limits the time for which both versions run. Two versions that undo each other's work
	// never come to rest together.
	together = 3 * time.Second
	// grace limits the time in which a controller must exit after SIGTERM, even if its Pod has a longer
	// grace period. Kubernetes grants 30 s by default, but most controllers exit at once, and any
	// controller may be killed at any moment.
	grace = 10 * time.Second
)

// An UpgradeKind determines what a run of Upgrade does.
type UpgradeKind string

const (
	// ThereAndBack replaces the old version by the new one, and then the new one by the old one.
	ThereAndBack UpgradeKind = "there-and-back"
	// There only replaces the old version by the new one.
	There UpgradeKind = "there"
	// Fresh installs the new version in an empty cluster.
	Fresh UpgradeKind = "fresh"
)

// Upgraded holds what an upgrade shows.
type Upgraded struct {
	upgrade.Result
	// Inconclusive is the reason why nothing can be concluded from the run.
	Inconclusive string `json:"inconclusive,omitempty"`
	// Killed reports whether the new version was killed as requested.
	Killed bool `json:"killed,omitempty"`
	// Kills are the moments of the upgrade at which the new version can be killed in another run.
	Kills []fault.Fault `json:"kills,omitempty"`
	Took  time.Duration `json:"took"`
	Trace []trace.Entry `json:"-"`
}

// replacement is the state of a run that replaces the version of the controller. A nil replacement is
// that of a run that does not.
type replacement struct {
	kind       UpgradeKind
	identities [slots]*rest.Config
	refusals   []upgrade.Refusal
	readings   map[string]upgrade.Reading
	settled    bool          // the old version has come to rest with the objects of the scenario
	killing    *killing      // nil unless the new version is killed
	tail       time.Duration // for which it is observed after that
}

// Upgrade runs a scenario with the old version of the controller, replaces it by the new version, and
// perhaps back. The lesson is that of the new version. If kill is not nil, the new version is killed there,
// and started again.
func (l *Lab) Upgrade(ctx context.Context, lesson *Lesson, kind UpgradeKind, kill *fault.Fault, expected []string, seed uint64) (*Upgraded, error) {
	r := &run{
		lab: l, scenario: lesson.Scenario, window: max(widest(lesson.Scenario), lesson.Window), streams: 1, idle: idle, out: &evidence.Run{Seed: seed},
		replacement: &replacement{kind: kind, readings: map[string]upgrade.Reading{}},
	}
	r.killAt(kill, lesson)
	l.elections.Trust(lesson.Elections)
	out, err := r.do(ctx)
	var gone *GoneError
	said := ""
	if errors.As(err, &gone) && (r.replacement.settled || kind == Fresh) {
		said, err = scrub.Known.Text(gone.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	result := upgrade.Judge(upgrade.Input{
		Record: upgrade.Record{
			Run: out, Gone: said, Installed: l.installed, Declared: lesson.Scenario.Objects(),
			Refusals: r.replacement.refusals, Readings: r.replacement.readings,
		},
		Reference: lesson.Reference, Fresh: kind == Fresh, Expected: expected,
	})
	done := &Upgraded{Result: result, Killed: r.replacement.killed(), Took: out.Took, Trace: out.Entries}
	if kill == nil {
		done.Kills = killsOf(out, lesson)
	}
	switch last := out.Steps[len(out.Steps)-1]; {
	case kill != nil && !done.Killed:
		done.Inconclusive = "the new version did not send " + kill.Point.String() + " in this run"
	case last.Restless:
		done.Inconclusive = "step " + last.Name + " does not come to rest: " + last.Unrest
	}
	return done, nil
}

// installed reports whether an object belongs to the installation of the old or the new version.
func (l *Lab) installed(ref state.Ref) bool {
	for slot := range slots {
		s := l.subject(slot)
		for _, objects := range [][]object{s.Install, s.Webhooks, s.Self} {
			for i := range objects {
				o := &objects[i]
				if o.GetName() == ref.Name && o.GetNamespace() == ref.Namespace && o.GroupVersionKind().GroupKind() == ref.GroupKind {
					return true
				}
			}
		}
	}
	return false
}

// slot returns the slot in which the first instance of a run starts.
func (r *run) slot() int {
	if r.replacement.isFresh() {
		return next
	}
	return 0
}

func (p *replacement) isFresh() bool { return p != nil && p.kind == Fresh }

// name returns the names of the instances, or nil.
func (p *replacement) name() func(slot int) string {
	if p == nil {
		return nil
	}
	return func(slot int) string {
		if slot == next {
			return upgrade.New
		}
		return upgrade.Old
	}
}

// identity returns the identities of the instances, or nil.
func (p *replacement) identity() func(slot int) *rest.Config {
	if p == nil {
		return nil
	}
	return func(slot int) *rest.Config { return p.identities[slot] }
}

// installFirst prepares the installation of the version that a run begins with. A fresh installation of
// the new version replaces the old one before anything uses it.
func (r *run) installFirst(ctx context.Context) error {
	if r.replacement == nil {
		return nil
	}
	r.replacement.identities[0] = r.lab.identity
	if !r.replacement.isFresh() {
		return nil
	}
	return r.installOver(ctx, upgrade.Up, 0, next)
}

// replaceVersions performs the steps with the old version, and then replaces it.
func (r *run) replaceVersions(ctx context.Context) error {
	p := r.replacement
	if err := r.steps(ctx); err != nil {
		return err
	}
	if p.kind == Fresh {
		return r.read(ctx, upgrade.Up, next)
	}
	p.settled = true
	if err := r.read(ctx, "", 0); err != nil {
		return err
	}
	if err := r.roll(ctx, upgrade.Up, 0, next); err != nil || p.kind == There {
		return err
	}
	return r.roll(ctx, upgrade.Down, next, 0)
}

// roll replaces the version in one slot by the version in another, as kubectl apply and a rollout of the
// controller's Deployment do, and reads the stored objects afterwards.
func (r *run) roll(ctx context.Context, step string, from, to int) error {
	err := r.milestone(ctx, step, func(context.Context) error {
		if r.lab.subject(from).Webhook.Port == 0 {
			r.lab.route(to) // otherwise, not before the new instance is ready
		}
		if err := r.installOver(ctx, step, from, to); err != nil {
			return err
		}
		if r.alternate() {
			// With leader election, only one of the versions works at any time.
			r.controller.Retire(from, grace)
			r.lab.route(to)
		}
		if err := r.startOther(to); err != nil {
			return &SetupError{err}
		}
		timeout := together
		if len(r.lab.subject(to).Webhooks) > 0 {
			timeout = stepTimeout
		}
		if _, err := r.rest(ctx, timeout); err != nil {
			return err
		}
		return r.switchOver(ctx, step, from, to)
	}, nil)
	if err != nil {
		return err
	}
	return r.read(ctx, step, to)
}

// startOther starts an instance of the other version. If no instance is left, it first releases their
// Leases.
func (r *run) startOther(slot int) error {
	if r.alternate() {
		return r.controller.Restart(slot)
	}
	return r.controller.Start(slot)
}

// alternate reports whether the two versions do not work at the same time, because both elect a leader.
func (r *run) alternate() bool {
	return len(r.lab.subject(0).Election) > 0 && len(r.lab.subject(next).Election) > 0 || len(r.lab.elections.Names()) > 0
}

// switchOver completes a rollout: the API server calls the webhooks of the new instance, and the old
// instance exits.
func (r *run) switchOver(ctx context.Context, step string, from, to int) error {
	r.lab.route(to)
	refused, err := r.lab.replace(ctx, r.lab.trusted(from).Webhooks, r.lab.trusted(to).Webhooks)
	if err != nil {
		return err
	}
	r.refuse(step, refused)
	r.controller.Retire(from, grace)
	return r.lab.withdraw(ctx, r.lab.subject(from), r.lab.subject(to))
}

// installOver replaces the installation of one version by that of another. If the API server refuses a
// CRD, the run ends, because an upgrade ends there as well.
func (r *run) installOver(ctx context.Context, step string, from, to int) error {
	refused, err := r.lab.replace(ctx, r.lab.trusted(from).Install, r.lab.trusted(to).Install)
	if err != nil {
		return &SetupError{err}
	}
	if r.refuse(step, refused) {
		return errStop
	}
	r.lab.presentOther(ctx, from, to)
	r.replacement.identities[to], _, err = r.lab.identityOf(ctx, r.lab.subject(to).Identity)
	if err != nil {
		return &SetupError{err}
	}
	return nil
}

// refuse records the objects that the API server did not accept, and reports whether there is a CRD among
// them.
func (r *run) refuse(step string, refused []upgrade.Refusal) (crd bool) {
	for _, refusal := range refused {
		refusal.Step = step
		refusal.Why = scrub.Known.Text(refusal.Why)
		crd = crd || refusal.CRD
		r.replacement.refusals = append(r.replacement.refusals, refusal)
	}
	return crd
}
