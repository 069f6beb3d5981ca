package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"

	a1 "github.com/koboshi-dev/koboshi/bugs/a1-duplicate-child"
	a2 "github.com/koboshi-dev/koboshi/bugs/a2-wrong-count"
	a3 "github.com/koboshi-dev/koboshi/bugs/a3-exists-is-fatal"
	a4 "github.com/koboshi-dev/koboshi/bugs/a4-stale-parent"
	b1 "github.com/koboshi-dev/koboshi/bugs/b1-first-exists"
	b2 "github.com/koboshi-dev/koboshi/bugs/b2-create-once"
	b3 "github.com/koboshi-dev/koboshi/bugs/b3-progress-in-memory"
	b4 "github.com/koboshi-dev/koboshi/bugs/b4-wrong-measure"
	b5 "github.com/koboshi-dev/koboshi/bugs/b5-mutated-retry"
	b6 "github.com/koboshi-dev/koboshi/bugs/b6-forgetful-recovery"
	c1 "github.com/koboshi-dev/koboshi/bugs/c1-edge-triggered"
	c2 "github.com/koboshi-dev/koboshi/bugs/c2-no-finalizer"
	c3 "github.com/koboshi-dev/koboshi/bugs/c3-tombstone"
	"github.com/koboshi-dev/koboshi/bugs/cloud"
	d1 "github.com/koboshi-dev/koboshi/bugs/d1-by-name"
	d2 "github.com/koboshi-dev/koboshi/bugs/d2-stale-spec"
	d3 "github.com/koboshi-dev/koboshi/bugs/d3-no-precondition"
	e1 "github.com/koboshi-dev/koboshi/bugs/e1-normalised"
	e2 "github.com/koboshi-dev/koboshi/bugs/e2-map-order"
	e3 "github.com/koboshi-dev/koboshi/bugs/e3-own-status"
	e4 "github.com/koboshi-dev/koboshi/bugs/e4-pending-handler"
	e5 "github.com/koboshi-dev/koboshi/bugs/e5-default-on-update"
	e6 "github.com/koboshi-dev/koboshi/bugs/e6-list-all"
	f1 "github.com/koboshi-dev/koboshi/bugs/f1-all-finalizers"
	f2 "github.com/koboshi-dev/koboshi/bugs/f2-cleanup-ignored"
	f3 "github.com/koboshi-dev/koboshi/bugs/f3-cleanup-once"
	f4 "github.com/koboshi-dev/koboshi/bugs/f4-falls-through"
	g1 "github.com/koboshi-dev/koboshi/bugs/g1-cross-namespace"
	h1 "github.com/koboshi-dev/koboshi/bugs/h1-lost-update"
	h2 "github.com/koboshi-dev/koboshi/bugs/h2-conflict-swallowed"
	i2 "github.com/koboshi-dev/koboshi/bugs/i2-error-is-final"
	i4 "github.com/koboshi-dev/koboshi/bugs/i4-cancelled-is-failed"
	i5 "github.com/koboshi-dev/koboshi/bugs/i5-quota-is-final"
	i6 "github.com/koboshi-dev/koboshi/bugs/i6-error-is-empty"
	i7 "github.com/koboshi-dev/koboshi/bugs/i7-webhook-is-gone"
	i8 "github.com/koboshi-dev/koboshi/bugs/i8-checked-once"
	i9 "github.com/koboshi-dev/koboshi/bugs/i9-given-up"
	j1 "github.com/koboshi-dev/koboshi/bugs/j1-id-not-kept"
	k1 "github.com/koboshi-dev/koboshi/bugs/k1-goes-on-leading"
	k2 "github.com/koboshi-dev/koboshi/bugs/k2-leader-for-life"
	l1 "github.com/koboshi-dev/koboshi/bugs/l1-timeout-is-failure"
	m1 "github.com/koboshi-dev/koboshi/bugs/m1-index-in-memory"
	n1 "github.com/koboshi-dev/koboshi/bugs/n1-custom-node"
	n2 "github.com/koboshi-dev/koboshi/bugs/n2-custom-lease"
	o1 "github.com/koboshi-dev/koboshi/bugs/o1-new-selector"
	o2 "github.com/koboshi-dev/koboshi/bugs/o2-version-in-pods"
	o3 "github.com/koboshi-dev/koboshi/bugs/o3-renamed-child"
	o4 "github.com/koboshi-dev/koboshi/bugs/o4-renamed-field"
	o5 "github.com/koboshi-dev/koboshi/bugs/o5-dropped-in-conversion"
	o6 "github.com/koboshi-dev/koboshi/bugs/o6-migrated-first"
	p1 "github.com/koboshi-dev/koboshi/bugs/p1-after-a-pause"
	p2 "github.com/koboshi-dev/koboshi/bugs/p2-slow-loop"
	p3 "github.com/koboshi-dev/koboshi/bugs/p3-plateau"
	q1 "github.com/koboshi-dev/koboshi/bugs/q1-created-once"
	q2 "github.com/koboshi-dev/koboshi/bugs/q2-taken-over"
	q3 "github.com/koboshi-dev/koboshi/bugs/q3-lost-label"
	r1 "github.com/koboshi-dev/koboshi/bugs/r1-converted-list"
	r2 "github.com/koboshi-dev/koboshi/bugs/r2-annotation-hash"
	r3 "github.com/koboshi-dev/koboshi/bugs/r3-always-elects"
	r4 "github.com/koboshi-dev/koboshi/bugs/r4-watches-again"
	s1 "github.com/koboshi-dev/koboshi/bugs/s1-token-again"
	t1 "github.com/koboshi-dev/koboshi/bugs/t1-secret-in-message"
	u1 "github.com/koboshi-dev/koboshi/bugs/u1-two-primaries"
	v1 "github.com/koboshi-dev/koboshi/bugs/v1-scaled-to-zero"
	w1 "github.com/koboshi-dev/koboshi/bugs/w1-shared-child"
	w3 "github.com/koboshi-dev/koboshi/bugs/w3-all-or-none"
	x1 "github.com/koboshi-dev/koboshi/bugs/x1-empty-object"
	x10 "github.com/koboshi-dev/koboshi/bugs/x10-never-ready"
	x2 "github.com/koboshi-dev/koboshi/bugs/x2-kept-label"
	x3 "github.com/koboshi-dev/koboshi/bugs/x3-left-service"
	x4 "github.com/koboshi-dev/koboshi/bugs/x4-odd-name"
	x5 "github.com/koboshi-dev/koboshi/bugs/x5-set-once"
	x6 "github.com/koboshi-dev/koboshi/bugs/x6-removed-api"
	x9 "github.com/koboshi-dev/koboshi/bugs/x9-granted-verb"
	y1 "github.com/koboshi-dev/koboshi/bugs/y1-shared-role"
	y2 "github.com/koboshi-dev/koboshi/bugs/y2-merged-labels"
	z1 "github.com/koboshi-dev/koboshi/bugs/z1-last-statement"
)

// controller runs a controller, or its repaired twin, until the context ends.
type controller func(ctx context.Context, cfg *rest.Config, o options) error

// catalogue holds all controllers of this program, keyed by the ID of their class in
// lower case. Controllers that are not written in Go are started by the command in their
// bug.yaml.
var catalogue = map[string]controller{
	"a1": managed(a1.Setup),
	"a2": managed(a2.Setup),
	"a3": managed(a3.Setup),
	"a4": managed(a4.Setup),
	"b1": managed(b1.Setup),
	"b2": managed(b2.Setup),
	"b3": managed(b3.Setup),
	"b4": managed(b4.Setup),
	"b5": managed(b5.Setup),
	"b6": managed(b6.Setup),
	"c1": managed(c1.Setup),
	"c2": managed(c2.Setup),
	"c3": alone(c3.Run),
	"d1": managed(d1.Setup),
	"d2": managed(d2.Setup),
	"d3": managed(d3.Setup),
	"e1": managed(e1.Setup),
	"e2": managed(e2.Setup),
	"e3": managed(e3.Setup),
	"e4": managed(e4.Setup),
	"e5": managed(e5.Setup),
	"e6": managed(e6.Setup),
	"f1": managed(f1.Setup),
	"f2": managed(f2.Setup),
	"f3": managed(f3.Setup),
	"f4": managed(f4.Setup),
	"g1": managed(g1.Setup),
	"h1": managed(h1.Setup),
	"h2": managed(h2.Setup),
	"i2": managed(i2.Setup),
	"i4": managed(i4.Setup),
	"i5": managed(i5.Setup),
	"i6": managed(i6.Setup),
	"i7": managed(i7.Setup),
	"i8": managed(i8.Setup),
	"i9": managed(i9.Setup),
	"j1": managed(j1.Setup),
	"k1": func(ctx context.Context, cfg *rest.Config, o options) error {
		return k1.Run(ctx, cfg, o.repaired, o.leaderElect)
	},
	"k2":  alone(k2.Run),
	"l1":  managed(l1.Setup),
	"m1":  managed(m1.Setup),
	"n1":  managed(n1.Setup),
	"n2":  managed(n2.Setup),
	"p1":  managed(p1.Setup),
	"p2":  managed(p2.Setup),
	"p3":  managed(p3.Setup),
	"r1":  managed(r1.Setup),
	"r2":  managed(r2.Setup),
	"r3":  alone(r3.Run),
	"r4":  alone(r4.Run),
	"q1":  managed(q1.Setup),
	"q2":  managed(q2.Setup),
	"q3":  managed(q3.Setup),
	"s1":  managed(s1.Setup),
	"t1":  managed(t1.Setup),
	"u1":  managed(u1.Setup),
	"v1":  managed(v1.Setup),
	"w1":  managed(w1.Setup),
	"w3":  managed(w3.Setup),
	"x1":  managed(x1.Setup),
	"x2":  managed(x2.Setup),
	"x3":  managed(x3.Setup),
	"x4":  managed(x4.Setup),
	"x5":  managed(x5.Setup),
	"x6":  managed(x6.Setup),
	"x9":  managed(x9.Setup),
	"x10": managed(x10.Setup),
	"y1":  managed(y1.Setup),
	"y2":  managed(y2.Setup),
	"z1":  managed(z1.Setup),
	"o1":  versions(o1.Setup, o1.SetupOld),
	"o2":  versions(o2.Setup, o2.SetupOld),
	"o3":  versions(o3.Setup, o3.SetupOld),
	"o4":  versions(o4.Setup, o4.SetupOld),
	"o5":  managed(o5.Setup),
	"o6":  versions(o6.Setup, o6.SetupOld),
}

// commands holds the servers with which controllers communicate.
var commands = map[string]func(ctx context.Context, args []string) error{
	"cloud": cloud.Run,
}

// names returns the IDs of all controllers, sorted.
func names() []string { return slices.Sorted(maps.Keys(catalogue)) }

// managed runs a controller in a manager of controller-runtime.
func managed(setup func(mgr ctrl.Manager, repaired bool) error) controller {
	return func(ctx context.Context, cfg *rest.Config, o options) error {
		mgr, err := newManager(cfg, o)
		if err != nil {
			return err
		}
		if err := setup(mgr, o.repaired); err != nil {
			return fmt.Errorf("setting up %s: %w", o.name, err)
		}
		return mgr.Start(ctx)
	}
}

// versions runs the new version of a controller, or with --old the version from which users upgrade.
func versions(setup func(mgr ctrl.Manager, repaired bool) error, old func(mgr ctrl.Manager) error) controller {
	return func(ctx context.Context, cfg *rest.Config, o options) error {
		if o.old {
			setup = func(mgr ctrl.Manager, _ bool) error { return old(mgr) }
		}
		return managed(setup)(ctx, cfg, o)
	}
}

// alone runs a controller that creates its own manager, or needs none.
func alone(run func(ctx context.Context, cfg *rest.Config, repaired bool) error) controller {
	return func(ctx context.Context, cfg *rest.Config, o options) error { return run(ctx, cfg, o.repaired) }
}
