package main

import (
	"context"
	"os"
	"slices"

	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/bugs/cloud"
	d1 "github.com/koboshi-dev/koboshi/bugs/d1-by-name"
	d2 "github.com/koboshi-dev/koboshi/bugs/d2-stale-spec"
	d3 "github.com/koboshi-dev/koboshi/bugs/d3-no-precondition"
	e1 "github.com/koboshi-dev/koboshi/bugs/e1-normalised"
	e2 "github.com/koboshi-dev/koboshi/bugs/e2-map-order"
	e3 "github.com/koboshi-dev/koboshi/bugs/e3-own-status"
	e4 "github.com/koboshi-dev/koboshi/bugs/e4-pending-handler"
	e5 "github.com/koboshi-dev/koboshi/bugs/e5-default-on-update"
	f1 "github.com/koboshi-dev/koboshi/bugs/f1-all-finalizers"
	f2 "github.com/koboshi-dev/koboshi/bugs/f2-cleanup-ignored"
	f3 "github.com/koboshi-dev/koboshi/bugs/f3-cleanup-once"
	f4 "github.com/koboshi-dev/koboshi/bugs/f4-falls-through"
	g1 "github.com/koboshi-dev/koboshi/bugs/g1-cross-namespace"
	h1 "github.com/koboshi-dev/koboshi/bugs/h1-lost-update"
	h2 "github.com/koboshi-dev/koboshi/bugs/h2-conflict-swallowed"
	i2 "github.com/koboshi-dev/koboshi/bugs/i2-error-is-final"
	j1 "github.com/koboshi-dev/koboshi/bugs/j1-id-not-kept"
	k1 "github.com/koboshi-dev/koboshi/bugs/k1-goes-on-leading"
	k2 "github.com/koboshi-dev/koboshi/bugs/k2-leader-for-life"
	l1 "github.com/koboshi-dev/koboshi/bugs/l1-timeout-is-failure"
	m1 "github.com/koboshi-dev/koboshi/bugs/m1-index-in-memory"
)

// controllersB are the classes C4 to M1 that use controller-runtime.
var controllersB = map[string]setup{
	"d1": d1.Setup,
	"d2": d2.Setup,
	"d3": d3.Setup,
	"e1": e1.Setup,
	"e2": e2.Setup,
	"e3": e3.Setup,
	"e4": e4.Setup,
	"e5": e5.Setup,
	"f1": f1.Setup,
	"f2": f2.Setup,
	"f3": f3.Setup,
	"f4": f4.Setup,
	"g1": g1.Setup,
	"h1": h1.Setup,
	"h2": h2.Setup,
	"i2": i2.Setup,
	"j1": j1.Setup,
	"l1": l1.Setup,
	"m1": m1.Setup,
}

// standaloneB are those that make their own manager, or none.
var standaloneB = map[string]standalone{
	"k1": func(ctx context.Context, cfg *rest.Config, repaired bool) error {
		return k1.Run(ctx, cfg, repaired, slices.Contains(os.Args, "--leader-elect"))
	},
	"k2": k2.Run,
}

// commandsB are no controllers but what controllers here talk to.
var commandsB = map[string]func(ctx context.Context, args []string) error{
	"cloud": cloud.Run,
}
