package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
)

// A reset undoes, in the store, every difference from the baseline, and then
// waits until everything in the plane has noticed:
//
//	differences ──▶ delete ──▶ put back ──▶ settled? ──▶ differences ──▶ none, twice
//	     ▲                                    │ no             │ some
//	     └────────────────────────────────────┴────────────────┘
//
// Controllers react to what they see in the meantime, and may be in the middle
// of something; what they then write is another difference.

var (
	// ErrForeignStore reports a Checkpoint or Reset of a plane with an external
	// etcd.
	ErrForeignStore = errors.New("only a store of the plane's own can be reset: another etcd may hold what others need; leave out --etcd-servers")
	// ErrNoBaseline reports a Reset before the first Checkpoint.
	ErrNoBaseline = errors.New("there is no baseline to return to; call Checkpoint first")
)

const (
	// settleTimeout bounds Checkpoint and Reset. A client that keeps writing
	// would make them last for ever.
	settleTimeout = 30 * time.Second
	// quietLooks is the number of consecutive checks that must find nothing to
	// do. Between two checks, an event that an informer has already passed on
	// reaches its queue.
	quietLooks = 2
	// lookInterval is short, as a reset takes some 20 ms.
	lookInterval = 2 * time.Millisecond
)

// errUnsettled is the cause when settleTimeout is over.
var errUnsettled = fmt.Errorf("the plane did not come to rest within %v; stop the controllers and clients that still write, and try again", settleTimeout)

// resetting is the state that a plane keeps between resets.
type resetting struct {
	mu       sync.Mutex // one Checkpoint or Reset at a time
	baseline *storage.Baseline
	client   *kubernetes.Clientset
	mapper   *restmapper.DeferredDiscoveryRESTMapper
}

// Checkpoint waits until the plane is idle and makes its state the baseline for
// Reset. Right after Start, this is the state that Start creates.
func (p *Plane) Checkpoint(ctx context.Context) error {
	err := p.exclusively(ctx, (*Plane).checkpoint)
	if err != nil {
		return fmt.Errorf("taking the baseline: %w", err)
	}
	return nil
}

// Reset brings the plane back to the baseline while it runs. Clients see
// ordinary events with rising versions; objects come back with their original
// UIDs. It returns when reads, discovery and the plane's own controllers agree.
// A write during a Reset may be undone or kept. Stop controllers outside the
// plane first.
func (p *Plane) Reset(ctx context.Context) error {
	err := p.exclusively(ctx, (*Plane).reset)
	if err != nil {
		return fmt.Errorf("resetting the plane: %w", err)
	}
	return nil
}

func (p *Plane) exclusively(ctx context.Context, run func(*Plane, context.Context) error) error {
	if p.etcd == nil {
		return ErrForeignStore
	}
	p.resetting.mu.Lock()
	defer p.resetting.mu.Unlock()
	if p.resetting.client == nil {
		config := rest.CopyConfig(p.loopback)
		config.QPS = -1 // these are questions of the server to itself
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		p.resetting.client = client
		p.resetting.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, settleTimeout, errUnsettled)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	defer context.AfterFunc(p.tasks.ctx, func() { fail(context.Cause(p.tasks.ctx)) })()
	return run(p, ctx)
}

func (p *Plane) checkpoint(ctx context.Context) error {
	var candidate *storage.Baseline
	quiet := 0
	err := p.poll(ctx, "the plane to come to rest", func(ctx context.Context) (bool, error) {
		err := p.atRest(ctx, candidate)
		if err == nil {
			quiet++
			return quiet >= quietLooks, nil
		}
		quiet = 0
		var failed error
		if candidate, failed = p.etcd.Baseline(ctx, p.storePrefix()); failed != nil {
			return false, failed
		}
		return false, err
	})
	if err == nil {
		p.resetting.baseline = candidate
	}
	return err
}

// atRest returns why the plane would not stay at the candidate.
func (p *Plane) atRest(ctx context.Context, candidate *storage.Baseline) error {
	if candidate == nil {
		return errors.New("the store has not been read yet")
	}
	if missing := p.notBootstrapped(candidate); missing != "" {
		return fmt.Errorf("%s does not exist yet", missing)
	}
	differences, err := candidate.Differences(ctx)
	if err != nil {
		return err
	}
	if differences = p.lasting(differences); len(differences) > 0 {
		return stillDiffers(differences)
	}
	return idle(nil)
}

// notBootstrapped returns an object that the plane creates by itself, possibly
// after /readyz is green, and that the baseline lacks.
func (p *Plane) notBootstrapped(baseline *storage.Baseline) string {
	keys := []string{"ranges/servicenodeports", "servicecidrs/kubernetes", "services/specs/default/kubernetes", "configmaps/kube-system/extension-apiserver-authentication"}
	for _, namespace := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, "kube-node-lease"} {
		keys = append(keys, "namespaces/"+namespace)
		if p.opts.Profile.RunsServiceAccounts() {
			keys = append(keys, "serviceaccounts/"+namespace+"/default")
		}
		if p.opts.Profile.Has("root-ca-certificate-publisher-controller") {
			keys = append(keys, "configmaps/"+namespace+"/kube-root-ca.crt")
		}
	}
	if !slices.Contains(p.apiserverFlags(), "--endpoint-reconciler-type=none") {
		keys = append(keys, "endpointslices/default/kubernetes")
	}
	for _, key := range keys {
		if !baseline.Has(path.Join(p.storePrefix(), key)) {
			return key
		}
	}
	return ""
}

// storePrefix returns the beginning of all kube-apiserver's keys.
func (p *Plane) storePrefix() string {
	prefix := defaultPrefix
	for _, flag := range p.apiserverFlags() {
		if value, ok := strings.CutPrefix(flag, "--etcd-prefix="); ok {
			prefix = value
		}
	}
	return path.Join("/", prefix) + "/"
}

// lasting leaves out what the plane itself writes continually.
func (p *Plane) lasting(differences []storage.Difference) []storage.Difference {
	prefix := p.storePrefix()
	return slices.DeleteFunc(differences, func(d storage.Difference) bool {
		key := strings.TrimPrefix(d.Key, prefix)
		// With these the API server reports that it is alive. It writes them
		// again when they are gone.
		for _, own := range []string{"masterleases/", "peerserverleases/", "leases/kube-system/apiserver-"} {
			if strings.HasPrefix(key, own) {
				return true
			}
		}
		// A node in the baseline is still running. Its old heartbeat would make
		// it look dead.
		return strings.HasPrefix(key, "leases/kube-node-lease/") && d.Now != nil && d.Then != nil
	})
}

func stillDiffers(differences []storage.Difference) error {
	return fmt.Errorf("%d objects still differ, among them %s", len(differences), differences[0].Key)
}

func (p *Plane) reset(ctx context.Context) error {
	if p.resetting.baseline == nil {
		return ErrNoBaseline
	}
	r := newRound(p)
	quiet := 0
	var reason error
	return p.pollEvery(ctx, lookInterval, "the plane to settle", func(ctx context.Context) (bool, error) {
		undone, err := r.undo(ctx)
		if err == nil {
			err = r.settled(ctx)
		}
		if err != nil {
			quiet = 0
			if ctx.Err() == nil || reason == nil {
				reason = err // the timeout is not a reason
			}
			return false, reason
		}
		if undone {
			quiet = 0 // this check saw differences; the next ones must see none
		}
		quiet++
		return quiet >= quietLooks, nil
	})
}

// A round is one reset.
type round struct {
	*Plane
	// reached is the revision of the last undone object of each kind, and fresh
	// lists the kinds of which a read is known to show it.
	reached map[schema.GroupKind]int64
	fresh   map[schema.GroupKind]bool
	// definitions are the CRDs that were undone, by their keys; groups are the
	// API groups whose versions may have changed as a result.
	definitions map[string]definition
	groups      map[string]bool
	// finalizing is set while nothing may be recreated; see finalize.
	finalizing bool
}

func newRound(p *Plane) *round {
	return &round{
		Plane:   p,
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

// The order in which objects are deleted: owners before what they own, since a
// controller that sees its object gone makes another; custom resources before
// their CRDs, or their watchers would be cut off without an event. They are
// recreated in the reverse order.
const (
	tierNamespace = iota
	tierOwner
	tierOwned
	tierAPI // CRDs and APIServices
	tiers
)

// A change is a difference and the object it concerns.
type change struct {
	storage.Difference
	object stored
	tier   int
}

// undo reverts all current differences and reports whether there were any.
func (r *round) undo(ctx context.Context) (bool, error) {
	differences, err := r.resetting.baseline.Differences(ctx)
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
	// CRDs and APIServices first, then namespaces, and owners before what they
	// own.
	for _, tier := range []int{tierAPI, tierNamespace, tierOwner, tierOwned} {
		if err := r.restore(ctx, byTier[tier]); err != nil {
			return true, err
		}
	}
	return len(differences) > 0, nil
}

// finalize lets the controller finish that deletes the custom resources of a
// CRD under deletion. That controller then waits, checking every 5 s, for the
// resources that have a finalizer. If they were recreated while it works, it
// could delete them; and for the next minute it would ignore a CRD of that
// name.
func (r *round) finalize(ctx context.Context, differences []storage.Difference) error {
	for _, d := range differences {
		c := newChange(d)
		definition, ok := newDefinition(d)
		if c.object.kind != definitionKind || !c.object.deleting || d.Now == nil || d.Then == nil || !ok {
			continue // not in the baseline: it is deleted anyway
		}
		prefix := r.storePrefix() + definition.Spec.Group + "/" + definition.Spec.Names.Plural + "/"
		present, err := r.resetting.baseline.Present(ctx, prefix)
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
		err = fmt.Errorf("%s has %v items to work on", queue, now.unfinished[queue])
	}
	if err != nil {
		return err
	}
	r.finalizing = false
	return errors.New("the objects that were deleted with a CRD must be restored")
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
	revisions, err := r.resetting.baseline.Delete(ctx, gone)
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
	revisions, err := r.resetting.baseline.Put(ctx, back)
	r.note(changes, revisions)
	return err
}

// note records what every reader must have seen before the plane has settled.
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

// stored holds the fields of an object in the store that a reset uses. It is
// empty where the value cannot be read, as when it is encrypted.
type stored struct {
	kind     schema.GroupKind
	owned    bool
	deleting bool // and blocked by a finalizer
}

// protobufHead begins every value that Kubernetes stores as protobuf.
var protobufHead = []byte("k8s\x00")

func readStored(value []byte) stored {
	var object metav1.PartialObjectMetadata
	if encoded, ok := bytes.CutPrefix(value, protobufHead); ok {
		var envelope runtime.Unknown
		// Every kind has its metadata in the first field, as this one has.
		if envelope.Unmarshal(encoded) != nil || object.Unmarshal(envelope.Raw) != nil {
			return stored{}
		}
		object.APIVersion, object.Kind = envelope.APIVersion, envelope.Kind
	} else if json.Unmarshal(value, &object) != nil {
		return stored{}
	}
	return stored{
		kind:     object.GroupVersionKind().GroupKind(),
		owned:    len(object.OwnerReferences) > 0,
		deleting: object.DeletionTimestamp != nil,
	}
}
