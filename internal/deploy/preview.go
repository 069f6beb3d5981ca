package deploy

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/compare"
	"github.com/koboshi-dev/koboshi/internal/deploy/order"
	"github.com/koboshi-dev/koboshi/internal/served"
)

// Preview changes nothing, and returns what Run would do. The API server checks each object that it
// can already check. Each difference is written as a unified diff.
func Preview(ctx context.Context, o Options, difference func(string) error) (*Result, error) {
	d, err := begin(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := d.label(ctx, o.Objects); err != nil {
		return nil, err
	}
	var failed []error
	p := order.Split(o.Objects)
	for _, u := range p.All() {
		if err := d.preview(ctx, u, slices.Contains(p.Custom, u), difference); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 0 {
		return &d.result, errors.Join(failed...)
	}
	return &d.result, d.previewPrune(ctx, difference)
}

// preview shows what a deployment would make of an object. The cluster may still have the old schema of a
// custom object, so an error proves nothing.
func (d *deployment) preview(ctx context.Context, u *unstructured.Unstructured, custom bool, difference func(string) error) error {
	before, err := d.live(ctx, u)
	if err != nil {
		return err
	}
	after := u
	if before != nil || !d.isNew(ctx, u.GetNamespace()) {
		after, err = d.Cluster.Apply(ctx, u, cluster.Apply{Force: d.Force, Dry: true})
	}
	if custom && err != nil || meta.IsNoMatchError(err) { // its CRD is in the manifest, and not yet in the cluster
		after, err = u, nil
	}
	if err != nil {
		return err
	}
	text, err := compare.Unified(before, after)
	if err != nil {
		return err
	}
	switch {
	case before == nil:
		d.done(cluster.IDOf(u), Created)
	case text == "":
		d.done(cluster.IDOf(u), Unchanged)
		return nil
	default:
		d.done(cluster.IDOf(u), Configured)
	}
	return difference(text)
}

func (d *deployment) previewPrune(ctx context.Context, difference func(string) error) error {
	obsolete, kept, err := d.obsolete(ctx, d.Objects)
	if err != nil {
		return err
	}
	for i := range kept {
		d.done(cluster.IDOf(&kept[i]), Kept)
	}
	for i := range obsolete {
		text, err := compare.Unified(&obsolete[i], nil)
		if err == nil {
			err = difference(text)
		}
		if err != nil {
			return err
		}
		d.done(cluster.IDOf(&obsolete[i]), Pruned)
	}
	return nil
}

// obsolete returns the objects that only the inventory has, in the reverse order of their
// application: those that a deployment deletes, and those that it keeps. It keeps namespaces, CRDs and
// claims of volumes, because with them, data would be deleted.
func (d *deployment) obsolete(ctx context.Context, objects []unstructured.Unstructured) (obsolete, kept []unstructured.Unstructured, err error) {
	members, err := d.inventory.Members(ctx)
	if err != nil {
		return nil, nil, err
	}
	wanted := map[cluster.ID]bool{}
	for i := range objects {
		wanted[cluster.IDOf(&objects[i])] = true
	}
	for _, u := range slices.Backward(members) {
		switch {
		case wanted[cluster.IDOf(&u)]:
		case order.IsNamespace(&u), isClaim(&u), served.IsCRD(&u) && !d.PruneCRDs:
			kept = append(kept, u)
		default:
			obsolete = append(obsolete, u)
		}
	}
	return obsolete, kept, nil
}

func isClaim(u *unstructured.Unstructured) bool {
	return u.GetKind() == "PersistentVolumeClaim" && u.GetAPIVersion() == "v1"
}

// Different reports whether a preview has found anything that a deployment would change.
func (r *Result) Different() bool {
	return slices.ContainsFunc(r.Changes, func(c Change) bool { return c.Action != Unchanged && c.Action != Kept })
}

// Summary counts what a preview has found.
func (r *Result) Summary() string {
	count := map[Action]int{}
	for _, c := range r.Changes {
		count[c.Action]++
	}
	return fmt.Sprintf("%d would be created, %d configured, %d pruned; %d would stay as they are",
		count[Created], count[Configured], count[Pruned], count[Unchanged]+count[Kept])
}
