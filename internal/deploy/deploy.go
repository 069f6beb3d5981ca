// Package deploy installs an operator in a cluster, and returns only when it works.
//
//	check ──▶ namespaces ──▶ inventory ──▶ CRDs ──▶ the rest ──▶ workloads current
//	                                                                   │
//	        inventory ◀── delete the rest ◀── custom objects ◀── webhooks, which answer
//
// A call that was interrupted at any point is completed by the next one. If a deployment fails, the
// previous one is applied again.
package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/inventory"
	"github.com/koboshi-dev/koboshi/internal/deploy/order"
	"github.com/koboshi-dev/koboshi/internal/deploy/ready"
	"github.com/koboshi-dev/koboshi/internal/deploy/webhooks"
	"github.com/koboshi-dev/koboshi/internal/served"
)

// Options says what is deployed, and how.
type Options struct {
	Cluster *cluster.Cluster
	// Objects is the manifest.
	Objects []unstructured.Unstructured
	// Name distinguishes deployments in one namespace; empty means the name of the first workload.
	Name string
	// Timeout limits the deployment, and again its rollback; 0 means no limit.
	Timeout time.Duration
	// Force takes fields over from other field managers.
	Force bool
	// PruneCRDs also deletes CRDs that the manifest no longer has, and with them their objects.
	PruneCRDs bool
	// Rollback applies the previous manifest if the deployment fails.
	Rollback bool
	Observer Observer
}

// Observer is told about progress, from one goroutine.
type Observer interface {
	// Done is called for each object that was applied or deleted.
	Done(Change)
	// Waiting is called when the list of objects that are waited for has changed.
	Waiting([]ready.Pending)
	Note(text string)
}

// Action says what happened to an object.
type Action string

// The actions.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Unchanged  Action = "unchanged"
	Pruned     Action = "pruned"
	Deleted    Action = "deleted"
	// Kept is the action for an object that the manifest no longer has, and that is not deleted
	// because this would delete data.
	Kept Action = "kept"
)

// Change is what happened to an object.
type Change struct {
	cluster.ID
	Action Action
}

// Result lists what was done.
type Result struct {
	Namespace, Name string
	Changes         []Change
	// RolledBack reports that the previous manifest was applied again.
	RolledBack bool
}

// Run deploys. If it fails, the result says what was done until then.
func Run(ctx context.Context, o Options) (*Result, error) {
	d, err := begin(ctx, o)
	if err != nil {
		return nil, err
	}
	manifest, err := inventory.Compress(o.Objects)
	if err != nil {
		return nil, err
	}
	if manifest == nil {
		o.Observer.Note("the manifest is too large for its inventory, so a later deployment that fails cannot return to it")
	}
	if err := d.label(ctx, o.Objects); err != nil {
		return nil, err
	}
	if err := d.check(ctx, order.Split(o.Objects)); err != nil {
		return &d.result, err
	}
	err = d.prepare(ctx, o.Objects)
	if err == nil {
		if err = d.install(ctx, o.Objects); err != nil && ctx.Err() == nil {
			return &d.result, d.rollBack(ctx, err)
		}
	}
	if err == nil {
		if err = d.finish(ctx, o.Objects, manifest); err != nil {
			err = fmt.Errorf("the operator works, but the deployment is not complete: %w; deploy again", err)
		}
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("the deployment was interrupted; run it again, and it continues: %w", err)
	}
	return &d.result, err
}

// deployment is one call.
type deployment struct {
	Options
	inventory *inventory.Inventory
	result    Result
}

// begin completes the manifest, and finds the inventory.
func begin(ctx context.Context, o Options) (*deployment, error) {
	if err := order.Complete(o.Cluster, o.Objects); err != nil {
		return nil, err
	}
	namespace, err := locate(&o)
	if err != nil {
		return nil, err
	}
	return open(ctx, o, namespace)
}

// locate returns the namespace of the inventory, and sets its name. By default, both are those of
// the first workload, so that several operators in one namespace do not share an inventory, in which
// each would delete the objects of the other. It asks the cluster nothing.
func locate(o *Options) (namespace string, err error) {
	namespace = o.Cluster.Namespace
	i := slices.IndexFunc(o.Objects, func(u unstructured.Unstructured) bool { return order.IsWorkload(&u) })
	switch {
	case i < 0 && o.Name == "":
		return "", errors.New("the manifest has no workload after which the deployment could be named; name it with --name")
	case i < 0:
		return namespace, nil
	}
	if o.Name == "" {
		o.Name = o.Objects[i].GetName()
	}
	if of := o.Objects[i].GetNamespace(); of != "" {
		namespace = of
	}
	return namespace, nil
}

// open reads the inventory in a namespace.
func open(ctx context.Context, o Options, namespace string) (*deployment, error) {
	i, err := inventory.Read(ctx, o.Cluster, namespace, o.Name)
	if err != nil {
		return nil, err
	}
	return &deployment{Options: o, inventory: i, result: Result{Namespace: namespace, Name: o.Name}}, nil
}

// label makes objects members of the deployment, except for namespaces that existed before it: they may
// have other content, so they must outlive the deployment.
func (d *deployment) label(ctx context.Context, objects []unstructured.Unstructured) error {
	d.inventory.Label(objects)
	for i := range objects {
		u := &objects[i]
		if !order.IsNamespace(u) {
			continue
		}
		live, err := d.live(ctx, u)
		if err != nil {
			return err
		}
		if live != nil && live.GetLabels()[inventory.PartOf] == "" {
			labels := u.GetLabels()
			delete(labels, inventory.PartOf)
			u.SetLabels(labels)
		}
	}
	return nil
}

// check makes the API server check all objects before anything is changed. It skips what can only
// be checked later: objects of CRDs in the manifest, and objects in namespaces that do not exist.
func (d *deployment) check(ctx context.Context, p order.Phases) error {
	var failed []error
	for _, u := range slices.Concat(p.Namespaces, p.CRDs, p.Main, p.Webhooks) {
		live, err := d.live(ctx, u)
		if err != nil {
			return err
		}
		if live == nil && d.isNew(ctx, u.GetNamespace()) {
			continue
		}
		// Other errors, such as a webhook that does not answer, may be gone when the turn comes.
		if _, err = d.Cluster.Apply(ctx, u, cluster.Apply{Force: d.Force, Dry: true}); refused(err) {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("nothing was changed: %w", errors.Join(failed...))
	}
	return nil
}

// isNew reports whether a namespace does not exist yet.
func (d *deployment) isNew(ctx context.Context, namespace string) bool {
	if namespace == "" {
		return false
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName(namespace)
	live, err := d.Cluster.Get(ctx, u)
	return err == nil && live == nil
}

// refused reports whether an object itself is the reason of an error.
func refused(err error) bool {
	if err == nil || strings.Contains(err.Error(), "does not support dry run") {
		return false
	}
	// For an unknown field, the API server answers with 500 and this text.
	if strings.Contains(err.Error(), "failed to create typed patch object") {
		return true
	}
	return apierrors.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

// live reads an object, and refuses one that belongs to another deployment.
func (d *deployment) live(ctx context.Context, u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := d.Cluster.Get(ctx, u)
	if err != nil || live == nil {
		return live, err
	}
	return live, d.inventory.CheckOwner(live)
}

// prepare adds the objects to the inventory, for which its namespace must exist.
func (d *deployment) prepare(ctx context.Context, objects []unstructured.Unstructured) error {
	if err := d.apply(ctx, order.Split(objects).Namespaces); err != nil {
		return err
	}
	return d.inventory.Begin(ctx, objects)
}

// install applies the objects, and waits until they work.
func (d *deployment) install(ctx context.Context, objects []unstructured.Unstructured) error {
	ctx, cancel := d.limit(ctx)
	defer cancel()
	p := order.Split(objects)
	for _, step := range []func() error{
		func() error { return d.apply(ctx, p.CRDs) },
		func() error { return served.Wait(ctx, d.Cluster.Dynamic, d.Cluster.Mapper, p.CRDs) },
		func() error { return d.apply(ctx, p.Main) },
		func() error { return ready.Wait(ctx, d.Cluster, p.Main, d.Observer.Waiting) },
		func() error { return d.apply(ctx, p.Webhooks) },
		func() error { return d.webhooks(ctx, p) },
		func() error { return d.apply(ctx, p.Custom) },
		func() error { return ready.Wait(ctx, d.Cluster, p.All(), d.Observer.Waiting) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// finish deletes the objects that only the inventory has, and records the deployment.
func (d *deployment) finish(ctx context.Context, objects []unstructured.Unstructured, manifest []byte) error {
	kept, err := d.prune(ctx, objects)
	if err != nil {
		return err
	}
	return d.inventory.Finish(ctx, slices.Concat(objects, kept), manifest)
}

// limit applies the timeout.
func (d *deployment) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.Timeout == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d.Timeout)
}

func (d *deployment) apply(ctx context.Context, objects []*unstructured.Unstructured) error {
	for _, u := range objects {
		before, err := d.live(ctx, u)
		if err != nil {
			return err
		}
		after, err := d.Cluster.Apply(ctx, u, cluster.Apply{Force: d.Force})
		if err != nil {
			return err
		}
		d.done(cluster.IDOf(u), applied(before, after))
	}
	return nil
}

// applied compares an object before and after it was applied.
func applied(before, after *unstructured.Unstructured) Action {
	switch {
	case before == nil:
		return Created
	case before.GetResourceVersion() == after.GetResourceVersion():
		return Unchanged
	}
	return Configured
}

func (d *deployment) done(id cluster.ID, action Action) {
	change := Change{id, action}
	d.result.Changes = append(d.result.Changes, change)
	d.Observer.Done(change)
}

// webhooks waits until the API server reaches the webhooks.
func (d *deployment) webhooks(ctx context.Context, p order.Phases) error {
	probes, err := webhooks.Probes(p.Webhooks, p.CRDs, d.result.Namespace)
	if err != nil {
		return err
	}
	untested, err := webhooks.Wait(ctx, d.Cluster, probes, d.Observer.Waiting)
	if err != nil {
		return err
	}
	for _, w := range untested {
		d.Observer.Note(fmt.Sprintf("no request could show whether the API server reaches the %s", w))
	}
	return nil
}

// prune deletes the objects that only the inventory has, and returns those that it keeps.
func (d *deployment) prune(ctx context.Context, objects []unstructured.Unstructured) (kept []unstructured.Unstructured, err error) {
	obsolete, kept, err := d.obsolete(ctx, objects)
	if err != nil {
		return nil, err
	}
	if len(obsolete) > 0 {
		// Another call may have applied what this one would delete.
		if err := d.inventory.Begin(ctx, objects); err != nil {
			return nil, err
		}
	}
	for i := range kept {
		d.done(cluster.IDOf(&kept[i]), Kept)
	}
	for i := range obsolete {
		if err := d.Cluster.Delete(ctx, &obsolete[i], metav1.DeletePropagationBackground); err != nil {
			return nil, err
		}
		d.done(cluster.IDOf(&obsolete[i]), Pruned)
	}
	return kept, nil
}

// rollBack applies the previous manifest after a failure, and returns an error that says what
// happened.
func (d *deployment) rollBack(ctx context.Context, failure error) error {
	switch {
	case !d.Rollback:
		return fmt.Errorf("%w\nthe cluster stays as it is; correct the manifest and deploy again", failure)
	case len(d.inventory.Manifest) == 0:
		return fmt.Errorf("%w\nthere is no earlier deployment to return to; correct the manifest and deploy again, or remove everything with --delete", failure)
	}
	d.Observer.Note("the deployment has failed; returning to the previous one")
	objects, err := d.previous()
	if err == nil {
		d.PruneCRDs = false
		err = d.restore(ctx, objects)
		d.result.RolledBack = err == nil
	}
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%w\nthe return to the previous deployment was interrupted; deploy again", failure)
	case err != nil:
		return fmt.Errorf("%w\nthe return to the previous deployment has failed, too: %w\nrepair the cause and deploy again", failure, err)
	}
	return fmt.Errorf("%w\nthe previous deployment was applied again, and works; correct the manifest and deploy again", failure)
}

// restore deploys the objects of the previous deployment.
func (d *deployment) restore(ctx context.Context, objects []unstructured.Unstructured) error {
	if err := d.label(ctx, objects); err != nil {
		return err
	}
	if err := d.prepare(ctx, objects); err != nil {
		return err
	}
	if err := d.install(ctx, objects); err != nil {
		return err
	}
	return d.finish(ctx, objects, d.inventory.Manifest)
}

// previous returns the objects of the previous deployment.
func (d *deployment) previous() ([]unstructured.Unstructured, error) {
	text, err := inventory.Decompress(d.inventory.Manifest)
	if err != nil {
		return nil, err
	}
	return order.Parse(d.inventory.Parent().String(), text)
}
