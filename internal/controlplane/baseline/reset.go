package baseline

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/controlplane/poll"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
)

// lookInterval is short because a reset takes about 20 ms. A look reads all metrics of the process, so looks
// without pauses between them would keep a processor busy that the plane needs to settle.
const lookInterval = 5 * time.Millisecond

func (k *Keeper) reset(ctx context.Context) error {
	if k.baseline == nil {
		return ErrNone
	}
	r := newRound(k)
	quiet := 0
	var reason error
	return poll.Poll{Interval: lookInterval, Waiting: k.Waiting}.Until(ctx, "the plane to settle", func(ctx context.Context) (bool, error) {
		undone, err := r.undo(ctx)
		if err == nil {
			err = r.settled(ctx)
		}
		if err != nil {
			quiet = 0
			if ctx.Err() == nil || reason == nil {
				reason = err // keep the earlier reason if this error is only the timeout
			}
			return false, reason
		}
		if undone {
			quiet = 0 // only checks that find no differences count
		}
		quiet++
		return quiet >= quietLooks, nil
	})
}

// A round is one reset.
type round struct {
	*Keeper
	// reached is the revision of the last undone object of each kind. fresh lists the kinds for
	// which reads already show the revision in reached.
	reached map[schema.GroupKind]int64
	fresh   map[schema.GroupKind]bool
	// definitions holds the undone CRDs by key. groups holds the API groups of undone CRDs
	// and APIServices, because the versions of these groups may have changed.
	definitions map[string]definition
	groups      map[string]bool
	// finalizing is set while nothing may be recreated; see finalize.
	finalizing bool
}

func newRound(k *Keeper) *round {
	return &round{
		Keeper:  k,
		reached: map[schema.GroupKind]int64{}, fresh: map[schema.GroupKind]bool{},
		definitions: map[string]definition{}, groups: map[string]bool{},
	}
}

var (
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	podKind        = schema.GroupKind{Kind: "Pod"}
	ipAddressKind  = schema.GroupKind{Group: "networking.k8s.io", Kind: "IPAddress"}
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	apiServiceKind = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
)

// The tiers are in the order in which objects are deleted. Owners come before
// the objects they own, since a controller replaces an owned object that
// disappears. Custom resources come before their CRDs; otherwise their watchers
// would be cut off without an event.
const (
	tierNamespace = iota
	tierOwner
	tierOwned
	tierAPI // CRDs and APIServices
	tiers
)

// A change is a difference together with the object that differs.
type change struct {
	storage.Difference
	object stored
	tier   int
}

// undo reverts all current differences and reports whether there were any.
func (r *round) undo(ctx context.Context) (bool, error) {
	differences, err := r.baseline.Differences(ctx)
	if err != nil {
		return false, err
	}
	differences = r.lasting(differences)
	if err := r.finalize(ctx, differences); err != nil {
		return true, err
	}
	var byTier [tiers][]change
	for _, d := range differences {
		c := newChange(d)
		byTier[c.tier] = append(byTier[c.tier], c)
	}
	for tier := range tiers {
		if err := r.remove(ctx, byTier[tier], tier == tierAPI); err != nil {
			return true, err
		}
	}
	// CRDs and APIServices are restored first, then namespaces, then owners,
	// then the objects they own.
	for _, tier := range []int{tierAPI, tierNamespace, tierOwner, tierOwned} {
		if err := r.restore(ctx, byTier[tier]); err != nil {
			return true, err
		}
	}
	return len(differences) > 0, nil
}

// finalize waits until upstream's CRD finalizer has finished with the CRDs that are being deleted.
// The CRD finalizer deletes the custom resources of a deleted CRD, and checks every 5 s whether the
// custom resources with finalizers are gone. While the CRD finalizer works, it could delete custom
// resources that were recreated, and for the next minute it would ignore a CRD of the same name. So
// finalize first removes the custom resources and the CRD from the store.
func (r *round) finalize(ctx context.Context, differences []storage.Difference) error {
	for _, d := range differences {
		c := newChange(d)
		definition, ok := newDefinition(d)
		if c.object.kind != definitionKind || !c.object.deleting || d.Now == nil || d.Then == nil || !ok {
			continue // a CRD that is not in the baseline is deleted anyway
		}
		prefix := r.Prefix + definition.Spec.Group + "/" + definition.Spec.Names.Plural + "/"
		present, err := r.baseline.Present(ctx, prefix)
		if err != nil {
			return err
		}
		var instances []change
		for _, p := range present {
			instances = append(instances, newChange(p))
		}
		if err := r.remove(ctx, instances, false); err != nil {
			return err
		}
		c.Recreated, r.finalizing = true, true
		if err := r.remove(ctx, []change{c}, true); err != nil {
			return err
		}
	}
	if !r.finalizing {
		return nil
	}
	const queue = "crd_finalizer"
	now, err := observe()
	if err == nil && now.unfinished[queue] != 0 {
		err = fmt.Errorf("work queue %s still has %v items", queue, now.unfinished[queue])
	}
	if err != nil {
		return err
	}
	r.finalizing = false
	return errors.New("objects that were deleted with their CRD are not restored yet")
}

func newChange(d storage.Difference) change {
	value := d.Now
	if value == nil {
		value = d.Then
	}
	c := change{Difference: d, object: readStored(value), tier: tierOwner}
	switch c.object.kind {
	case namespaceKind:
		c.tier = tierNamespace
	case definitionKind, apiServiceKind:
		c.tier = tierAPI
	case podKind, ipAddressKind:
		c.tier = tierOwned
	default:
		if c.object.owned {
			c.tier = tierOwned
		}
	}
	return c
}

func (r *round) remove(ctx context.Context, changes []change, api bool) error {
	var gone []storage.Difference
	var kept []change
	for _, c := range changes {
		if c.Now != nil && (c.Then == nil || c.Recreated) {
			gone = append(gone, c.Difference)
			kept = append(kept, c)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if api {
		if err := r.readable(ctx); err != nil {
			return err
		}
	}
	revisions, err := r.baseline.Delete(ctx, gone)
	r.note(kept, revisions)
	return err
}

func (r *round) restore(ctx context.Context, changes []change) error {
	var back []storage.Difference
	for _, c := range changes {
		if c.Then != nil {
			back = append(back, c.Difference)
		}
	}
	if len(back) == 0 {
		return nil
	}
	revisions, err := r.baseline.Put(ctx, back)
	r.note(changes, revisions)
	return err
}

// note records the changes that every reader must see before the plane is settled.
func (r *round) note(changes []change, revisions map[string]int64) {
	for _, c := range changes {
		revision, ok := revisions[c.Key]
		if !ok || c.object.kind.Empty() {
			continue
		}
		kind := c.object.kind
		r.reached[kind] = max(r.reached[kind], revision)
		r.fresh[kind] = false
		switch kind {
		case definitionKind:
			if d, ok := newDefinition(c.Difference); ok {
				r.definitions[c.Key], r.groups[d.Spec.Group] = d, true
			}
		case apiServiceKind:
			_, group, _ := strings.Cut(path.Base(c.Key), ".")
			r.groups[group] = true
		}
	}
}
