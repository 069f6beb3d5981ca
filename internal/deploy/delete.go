package deploy

import (
	"context"
	"fmt"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/inventory"
	"github.com/koboshi-dev/koboshi/internal/deploy/ready"
	"github.com/koboshi-dev/koboshi/internal/deploy/remove"
)

// Delete deletes a deployment, and returns when everything is gone. It is found by the manifest, or
// by its name if there is no manifest. Agree is called with a description of what will be deleted;
// if it returns an error, nothing is.
func Delete(ctx context.Context, o Options, agree func(lines []string) error) (*Result, error) {
	namespace, err := located(ctx, &o)
	if err != nil {
		return nil, err
	}
	d, err := open(ctx, o, namespace)
	if err != nil {
		return nil, err
	}
	plan, err := remove.Find(ctx, o.Cluster, d.inventory)
	if err != nil {
		return nil, err
	}
	if plan.Empty() {
		o.Observer.Note(fmt.Sprintf("there is no deployment %s in namespace %s", d.result.Name, d.result.Namespace))
		return &d.result, nil
	}
	if err := plan.Check(); err != nil {
		return nil, err
	}
	of := fmt.Sprintf("deployment %s in namespace %s of the cluster at %s", d.result.Name, d.result.Namespace, o.Cluster.Server)
	if err := agree(append([]string{of}, plan.Lines()...)); err != nil {
		return nil, err
	}
	within, cancel := d.limit(ctx)
	defer cancel()
	if err := plan.Run(within, removing{d}); err != nil {
		return &d.result, fmt.Errorf("%w\ndelete again, and it continues", err)
	}
	return &d.result, nil
}

// located returns the namespace of the inventory. It does not ask the cluster for kinds, because the
// CRDs may be gone already.
func located(ctx context.Context, o *Options) (string, error) {
	if len(o.Objects) == 0 {
		return inventory.Find(ctx, o.Cluster, o.Name)
	}
	return locate(o)
}

// removing passes on the progress of a deletion.
type removing struct{ d *deployment }

func (r removing) Gone(id cluster.ID) { r.d.done(id, Deleted) }

func (r removing) Waiting(pending []ready.Pending) { r.d.Observer.Waiting(pending) }
