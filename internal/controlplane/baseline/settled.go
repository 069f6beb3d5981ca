package baseline

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	// This import adds the metrics of informers, as in upstream's programs. Without these
	// metrics, the progress of an informer would be unknown.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"

	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
)

// To find out whether everything in the plane has noticed the undone differences, a reset
// sends requests to the API server and reads the metrics of the controllers.

// askers is the maximum number of concurrent requests to the API server.
const askers = 8

// An Undone is a difference and the revision of the store at which it was undone.
type Undone struct {
	storage.Difference
	Revision int64
}

// Settled returns nil if everything in the plane has noticed that these differences were
// undone; otherwise, the error names a part of the plane that has not noticed yet.
func (k *Keeper) Settled(ctx context.Context, undone ...Undone) error {
	return k.exclusively(ctx, func(ctx context.Context) error {
		r := newRound(k)
		for _, u := range undone {
			r.note([]change{newChange(u.Difference)}, map[string]int64{u.Key: u.Revision})
		}
		return r.settled(ctx)
	})
}

// settled returns an error that names a part of the plane that does not match the
// baseline yet.
func (r *round) settled(ctx context.Context) error {
	if err := r.readable(ctx); err != nil {
		return err
	}
	if err := r.served(ctx); err != nil {
		return err
	}
	return idle(r.reached)
}

// readable ensures that the API server's watch caches have received the changes to the
// undone objects, so that a read at any consistency level shows these changes.
func (r *round) readable(ctx context.Context) error {
	var stale []schema.GroupKind
	for kind := range r.reached {
		if !r.fresh[kind] {
			stale = append(stale, kind)
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(askers)
	for _, kind := range stale {
		group.Go(func() error {
			if err := r.readFrom(ctx, kind, r.reached[kind]); err != nil {
				return fmt.Errorf("reading %s: %w", kind, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, kind := range stale {
		r.fresh[kind] = true
	}
	return nil
}

// readFrom returns when the watch cache of a kind has reached the revision. If a
// kind is not served, it has no cache, and readFrom does not wait.
func (r *round) readFrom(ctx context.Context, kind schema.GroupKind, revision int64) error {
	for _, again := range []bool{true, false} {
		mapping, err := r.mapper.RESTMapping(kind)
		if err == nil {
			err = r.list(ctx, mapping.Resource, revision)
		}
		switch {
		case err == nil:
			return nil
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			return err
		case again:
			r.mapper.Reset() // cached discovery may be stale
		}
	}
	return nil
}

func (k *Keeper) list(ctx context.Context, resource schema.GroupVersionResource, revision int64) error {
	request := k.client.RESTClient().Get().AbsPath(pathTo(resource)).Param("limit", "1").MaxRetries(0)
	if revision > 0 {
		request = request.Param("resourceVersion", fmt.Sprint(revision)).
			Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan))
	}
	return request.Do(ctx).Error()
}

func pathTo(resource schema.GroupVersionResource) string {
	if resource.Group == "" {
		return path.Join("/api", resource.Version, resource.Resource)
	}
	return path.Join("/apis", resource.Group, resource.Version, resource.Resource)
}

// A definition holds the fields of a stored CRD that a reset uses.
type definition struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
	wanted bool // whether the baseline has it
}

func newDefinition(difference storage.Difference) (d definition, ok bool) {
	value := difference.Then
	if value == nil {
		value = difference.Now
	}
	d.wanted = difference.Then != nil
	return d, json.Unmarshal(value, &d) == nil
}

// resources lists the served resources of the CRD, one for each version.
func (d definition) resources() (served []schema.GroupVersionResource) {
	for _, v := range d.Spec.Versions {
		if v.Served {
			served = append(served, schema.GroupVersionResource{Group: d.Spec.Group, Version: v.Name, Resource: d.Spec.Names.Plural})
		}
	}
	return served
}

// served ensures that custom resources are served, and listed by discovery, if
// and only if the baseline has their CRDs.
func (r *round) served(ctx context.Context) error {
	if len(r.groups) == 0 {
		return nil
	}
	if err := r.versionsListed(ctx); err != nil {
		return err
	}
	listed, err := r.resourcesListed(ctx)
	if err != nil {
		return err
	}
	for _, d := range r.definitions {
		for _, resource := range d.resources() {
			if listed[resource] != d.wanted {
				return fmt.Errorf("discovery does not match the baseline yet (%s is listed: %t)", resource, listed[resource])
			}
			if err := r.list(ctx, resource, 0); apierrors.IsNotFound(err) == d.wanted {
				return fmt.Errorf("the API server does not match the baseline yet (%s is served: %t)", resource, !d.wanted)
			}
		}
	}
	return nil
}

// versionsListed compares the group list of discovery with the APIServices in the
// baseline.
func (r *round) versionsListed(ctx context.Context) error {
	raw, err := r.client.RESTClient().Get().AbsPath("/apis").SetHeader("Accept", runtime.ContentTypeJSON).DoRaw(ctx)
	if err != nil {
		return err
	}
	var list metav1.APIGroupList
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("reading discovery: %w", err)
	}
	listed := map[string]bool{}
	for _, group := range list.Groups {
		for _, v := range group.Versions {
			listed[v.Version+"."+group.Name] = r.groups[group.Name]
		}
	}
	const services = "apiregistration.k8s.io/apiservices/"
	for key := range r.baseline.Keys {
		service, ok := strings.CutPrefix(key, r.Prefix+services)
		_, group, _ := strings.Cut(service, ".")
		if !ok || !r.groups[group] {
			continue
		}
		if !listed[service] {
			return fmt.Errorf("discovery does not list %s yet", service)
		}
		delete(listed, service)
	}
	for service, extra := range listed {
		if extra {
			return fmt.Errorf("discovery still lists %s", service)
		}
	}
	return nil
}

func (r *round) resourcesListed(ctx context.Context) (map[schema.GroupVersionResource]bool, error) {
	raw, err := r.client.RESTClient().Get().AbsPath("/apis").
		SetHeader("Accept", runtime.ContentTypeJSON+";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	var groups apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal(raw, &groups); err != nil {
		return nil, fmt.Errorf("reading discovery: %w", err)
	}
	listed := map[schema.GroupVersionResource]bool{}
	for _, group := range groups.Items {
		for _, version := range group.Versions {
			for _, resource := range version.Resources {
				listed[schema.GroupVersionResource{Group: group.Name, Version: version.Version, Resource: resource.Resource}] = true
			}
		}
	}
	return listed, nil
}

// idle returns an error that names an informer of the plane that has not received the
// changes to the undone objects, or a controller that has work to do. All informers and
// controllers run in this process and have upstream's metrics.
func idle(reached map[schema.GroupKind]int64) error {
	now, err := observe()
	if err != nil {
		return err
	}
	return now.idle(reached)
}

func (now activity) idle(reached map[schema.GroupKind]int64) error {
	due := map[string]float64{}
	for kind, revision := range reached {
		// Upstream derives the resource in an informer's metrics from the kind in this
		// way, even if the plural is wrong.
		due[kind.Group+"/"+strings.ToLower(kind.Kind)+"s"] = float64(revision)
	}
	for i, revision := range now.informers {
		if revision < due[i.resource] && !partial(i) {
			return fmt.Errorf("%s has not seen all changes to %s", i.component, i.resource)
		}
	}
	for i, items := range now.queued {
		if items > 0 {
			return fmt.Errorf("%s has not processed all of its events for %s", i.component, i.resource)
		}
	}
	for queue, items := range now.unfinished {
		if items != 0 {
			return fmt.Errorf("work queue %s still has %v items", queue, items)
		}
	}
	return nil
}

// An informer is identified by the name of its component and by its resource.
type informer struct{ component, resource string }

// activity is the progress of the controllers in this process.
type activity struct {
	informers  map[informer]float64 // the resource version that each informer has reached
	queued     map[informer]float64 // the number of unprocessed events of each informer
	unfinished map[string]float64   // the number of items waiting or in progress, by queue
}

func observe() (activity, error) {
	now := activity{informers: map[informer]float64{}, queued: map[informer]float64{}, unfinished: map[string]float64{}}
	families, err := progress.gather()
	if err != nil {
		return now, err
	}
	for _, family := range families {
		name := family.GetName()
		if !slices.Contains(wanted, name) {
			continue
		}
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range metric.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			i := informer{labels["name"], labels["group"] + "/" + labels["resource"]}
			switch name {
			case "informer_store_resource_version":
				now.informers[i] = metric.GetGauge().GetValue()
			case "informer_queued_items":
				now.queued[i] = metric.GetGauge().GetValue()
			// The depth metric of a queue does not include items in progress, so
			// completed items are subtracted from added ones.
			case "workqueue_adds_total":
				now.unfinished[labels["name"]] += metric.GetCounter().GetValue()
			case "workqueue_work_duration_seconds":
				now.unfinished[labels["name"]] -= float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return now, nil
}

// partial reports whether the informer sees only some objects of its kind, so that
// it may never reach the last revision: the scheduler's Pod informer leaves out
// finished Pods.
func partial(i informer) bool { return i == informer{"kube-scheduler", "/pods"} }
