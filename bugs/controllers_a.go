package main

import (
	a1 "github.com/koboshi-dev/koboshi/bugs/a1-duplicate-child"
	a2 "github.com/koboshi-dev/koboshi/bugs/a2-wrong-count"
	a3 "github.com/koboshi-dev/koboshi/bugs/a3-exists-is-fatal"
	a4 "github.com/koboshi-dev/koboshi/bugs/a4-stale-parent"
	b1 "github.com/koboshi-dev/koboshi/bugs/b1-first-exists"
	b2 "github.com/koboshi-dev/koboshi/bugs/b2-create-once"
	b3 "github.com/koboshi-dev/koboshi/bugs/b3-progress-in-memory"
	b4 "github.com/koboshi-dev/koboshi/bugs/b4-wrong-measure"
	b5 "github.com/koboshi-dev/koboshi/bugs/b5-mutated-retry"
	c1 "github.com/koboshi-dev/koboshi/bugs/c1-edge-triggered"
	c2 "github.com/koboshi-dev/koboshi/bugs/c2-no-finalizer"
	c3 "github.com/koboshi-dev/koboshi/bugs/c3-tombstone"
)

// controllersA are the classes A1 to C2.
var controllersA = map[string]setup{
	"a1": a1.Setup,
	"a2": a2.Setup,
	"a3": a3.Setup,
	"a4": a4.Setup,
	"b1": b1.Setup,
	"b2": b2.Setup,
	"b3": b3.Setup,
	"b4": b4.Setup,
	"b5": b5.Setup,
	"c1": c1.Setup,
	"c2": c2.Setup,
}

// standaloneA is C3, which is about informers and uses client-go alone.
var standaloneA = map[string]standalone{"c3": c3.Run}
