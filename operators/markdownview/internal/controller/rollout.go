package controller

import (
	"maps"
	"slices"
)

// A template is a version of a viewer: its content, and how it is run. It goes
// by the hash in the label children.TemplateLabel.
type template = string

// rollout is how far a site has got, as observed.
//
//	       edit                 as many new viewers are        the Service
//	                            Ready as are wanted            selects the new
//	steady ────▶ new viewers are ───────▶ the Service ────────▶ old viewers ───▶ old content
//	  ▲          started and old          is switched           may leave:       is deleted
//	  │          ones held                                      released           │
//	  └────────────────────────────────────────────────────────────────────────────┘
//
// Where a site is follows from these values alone, so that a controller can take
// over from another at any point.
type rollout struct {
	// desired is what the spec asks for; empty when it cannot be made, and then
	// what is deployed stays.
	desired template
	// wanted is how many viewers there are to be.
	wanted int32
	// deployed is what the Deployment has; empty without a Deployment.
	deployed template
	// held says that no viewer of an older template may leave.
	held bool
	// selected is what the Service selects; empty without a Service.
	selected template
	// viewers there are, of each template.
	viewers map[template]viewers
}

// viewers are the Pods of one template, as ReplicaSets count them.
type viewers struct {
	// pods there are or are to be.
	pods int32
	// ready can be read from.
	ready int32
	// available are those of the ready that the Deployment relies on: it takes
	// away others first.
	available int32
}

// step is what the children are to be next.
type step struct {
	// deploy is the template for the Deployment; empty to leave it alone.
	deploy template
	// hold says that no viewer of an older template may leave.
	hold bool
	// sel is what the Service is to select; empty to leave it alone.
	sel template
	// prune says that no content but the desired is needed any more.
	prune bool
}

// next decides. It never asks for two things of which the second is only safe
// after the first: the Service is switched to what is deployed already, and old
// viewers are released when the Service is observed to select the new.
func (r rollout) next() step {
	target := r.desired
	if target == "" {
		target = r.deployed
	}
	s := step{deploy: target, sel: r.serve(target)}
	if r.deployed != "" && r.deployed != target && !r.mayReplace(target, s.sel) {
		s.deploy = r.deployed
	}
	s.hold = r.mustHold(s.deploy, s.sel)
	if s.hold && !r.held && s.sel != r.selected {
		s.sel = r.selected // to what is held already, or not yet
	}
	s.prune = r.desired != "" && !r.held && r.deployed == r.desired && r.selected == r.desired && r.alone()
	return s
}

// serve is what the Service should select: the target as soon as all its viewers
// are Ready, until then whatever readers have, and never what the Deployment is
// about to take away.
func (r rollout) serve(target template) template {
	heading := r.deployed == target
	switch {
	case heading && r.viewers[target].ready >= r.wanted:
		return target
	case r.viewers[r.selected].ready > 0:
		return r.selected
	case heading && r.viewers[target].ready > 0:
		return target
	}
	if other := r.mostAvailable(); other != "" {
		return other
	}
	if r.selected == "" && (r.deployed == "" || heading) {
		return target
	}
	return r.selected
}

// mostAvailable is the template with the most viewers that the Deployment does
// not take for broken; empty when there are none.
func (r rollout) mostAvailable() template {
	best := ""
	for _, t := range slices.Sorted(maps.Keys(r.viewers)) {
		if r.viewers[t].available > r.viewers[best].available {
			best = t
		}
	}
	return best
}

// mayReplace tells whether another template can be deployed without harm to the
// viewers that readers have, or are about to be given. The Deployment takes Ready
// viewers that it does not count as available for broken ones, and such are those
// that were new while the old were held. And of more available viewers than are
// wanted it takes away the surplus, no matter whose: so those of other templates
// have to leave first.
func (r rollout) mayReplace(by, sel template) bool {
	if sel != r.selected && r.viewers[sel].ready > 0 {
		return false
	}
	served := r.viewers[r.selected]
	switch {
	case by == r.selected, served.ready == 0:
		return true
	case served.available < served.ready && r.deployed == r.selected:
		return false // until they are released, and that is noticed
	}
	var others int32
	for t, v := range r.viewers {
		if t != r.selected {
			others += v.available
		}
	}
	return others == 0 || others+served.available <= r.wanted
}

// mustHold tells whether old viewers have to stay while a template is deployed:
// as long as the Service selects them, and before it does.
func (r rollout) mustHold(deploy, sel template) bool {
	old := func(t template) bool { return t != "" && t != deploy }
	return r.wanted > 0 && (old(r.selected) || old(sel))
}

// alone tells whether there are no viewers but the desired.
func (r rollout) alone() bool {
	for t, v := range r.viewers {
		if t != r.desired && v.pods > 0 {
			return false
		}
	}
	return true
}

// done tells whether all wanted viewers serve what the spec asks for.
func (r rollout) done() bool {
	return r.desired != "" && r.deployed == r.desired && r.selected == r.desired &&
		r.viewers[r.desired].ready >= r.wanted
}
