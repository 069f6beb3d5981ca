package controller

import (
	"maps"
	"slices"
)

// A template is a version of a viewer: its content, and the way it is run. The hash in the label
// children.TemplateLabel identifies a template.
type template = string

// rollout is the observed progress of a site.
//
//	       edit                 as many new viewers are        the Service
//	                            Ready as are wanted            selects the new
//	steady ────▶ new viewers are ───────▶ the Service ────────▶ old viewers ───▶ old content
//	  ▲          started and old          is switched           may leave:       is deleted
//	  │          ones held                                      released           │
//	  └────────────────────────────────────────────────────────────────────────────┘
//
// The state of a rollout depends only on the fields of this type, so a controller can take
// over from another controller at any point.
type rollout struct {
	// desired is the template for the spec. If no template can be made, desired is empty
	// and the deployed template stays.
	desired template
	// wanted is the desired number of viewers.
	wanted int32
	// deployed is the template of the Deployment; empty if there is no Deployment.
	deployed template
	// held reports whether viewers of older templates must not be removed.
	held bool
	// selected is the template that the Service selects; empty if there is no Service.
	selected template
	// viewers counts the viewers of each template.
	viewers map[template]viewers
}

// viewers counts the Pods of one template, as ReplicaSets report them.
type viewers struct {
	// pods counts Pods that exist or are requested.
	pods int32
	// ready counts the Pods that can serve.
	ready int32
	// available counts the ready Pods that the Deployment considers available. The
	// Deployment removes unavailable Pods first.
	available int32
}

// step is the next state of the children.
type step struct {
	// deploy is the template for the Deployment; an empty template leaves the Deployment unchanged.
	deploy template
	// hold reports whether viewers of older templates must not be removed.
	hold bool
	// sel is the template for the Service; an empty template leaves the Service unchanged.
	sel template
	// prune reports whether only the desired content is still needed.
	prune bool
}

// next returns the next step. A step never combines two writes if the second is safe only
// after the first. The Service is switched only to a template that is already deployed. Old
// viewers are released only once the Service is observed to select the new viewers.
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
		s.sel = r.selected // switch only once the old viewers are held
	}
	s.prune = r.desired != "" && !r.held && r.deployed == r.desired && r.selected == r.desired && r.alone()
	return s
}

// serve returns the template for the Service: the target if all its viewers are Ready,
// otherwise the template that readers currently get. serve never returns a template whose
// viewers the Deployment is about to remove.
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

// mostAvailable returns the template with the most viewers that the Deployment
// considers healthy, or "".
func (r rollout) mostAvailable() template {
	best := ""
	for _, t := range slices.Sorted(maps.Keys(r.viewers)) {
		if r.viewers[t].available > r.viewers[best].available {
			best = t
		}
	}
	return best
}

// mayReplace reports whether another template can be deployed without harming the viewers
// that serve readers now or are about to serve them. The Deployment treats Ready viewers as
// broken until it counts them as available. While older viewers are held, the Deployment
// counts no new viewers as available. If more viewers are available than are wanted, the
// Deployment removes the surplus regardless of their template, so viewers of other
// templates must leave first.
func (r rollout) mayReplace(by, sel template) bool {
	if sel != r.selected && r.viewers[sel].ready > 0 {
		return false
	}
	served := r.viewers[r.selected]
	switch {
	case by == r.selected, served.ready == 0:
		return true
	case served.available < served.ready && r.deployed == r.selected:
		return false // until the hold is released and these viewers count as available
	}
	var others int32
	for t, v := range r.viewers {
		if t != r.selected {
			others += v.available
		}
	}
	return others == 0 || others+served.available <= r.wanted
}

// mustHold reports whether old viewers must stay while a template is deployed, because the
// Service selects them or is about to select them.
func (r rollout) mustHold(deploy, sel template) bool {
	old := func(t template) bool { return t != "" && t != deploy }
	return r.wanted > 0 && (old(r.selected) || old(sel))
}

// alone reports whether only viewers of the desired template exist.
func (r rollout) alone() bool {
	for t, v := range r.viewers {
		if t != r.desired && v.pods > 0 {
			return false
		}
	}
	return true
}

// done reports whether the wanted number of viewers serve the site that the spec describes.
func (r rollout) done() bool {
	return r.desired != "" && r.deployed == r.desired && r.selected == r.desired &&
		r.viewers[r.desired].ready >= r.wanted
}
