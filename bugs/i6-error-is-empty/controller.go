// Package i6 has the bug of class I6: a list that could not be read is taken for an empty list.
package i6

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// Spec is the desired state.
type Spec struct {
	Address string `json:"address,omitempty"`
}

// Status is the observed state.
type Status struct {
	Address string `json:"address,omitempty"`
}

// Zone is a name in the DNS, whose records are in a ConfigMap.
type Zone = object.Object[Spec, Status]

// pause is the time between two attempts to reach the API server.
const pause = 100 * time.Millisecond

type reconciler struct {
	child.Keeper
}

// Setup adds the controller to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[Spec, Status]("Zone")
	watching, err := newClient(mgr.GetConfig())
	if err != nil {
		return err
	}
	keeper := child.NewKeeper(mgr)
	s := &sweeper{Keeper: keeper, watching: watching, list: orNone}
	if repaired {
		s.list = orAgain
	}
	if err := mgr.Add(manager.RunnableFunc(s.follow)); err != nil {
		return fmt.Errorf("adding the sweeper: %w", err)
	}
	return ctrl.NewControllerManagedBy(mgr).Named("i6").For(&Zone{}).Owns(&corev1.ConfigMap{}).Complete(&reconciler{keeper})
}

func newClient(cfg *rest.Config) (client.WithWatch, error) {
	mapper, err := object.Mapper(nil, nil)
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: object.Scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	return c, nil
}

// Reconcile publishes the address of a zone, and records it in the status.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var z Zone
	if err := r.Live.Get(ctx, req.NamespacedName, &z); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !z.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	records := recordsOf(req.NamespacedName)
	there, err := r.Ensure(ctx, &z, records, func() {
		records.Data = map[string]string{"A": z.Spec.Address}
		r.Own(&z, records)
	})
	if err != nil || !there || z.Status.Address == z.Spec.Address {
		return ctrl.Result{}, err
	}
	z.Status.Address = z.Spec.Address
	return ctrl.Result{}, r.Status().Update(ctx, &z)
}

func recordsOf(zone types.NamespacedName) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: zone.Namespace, Name: zone.Name + "-records"}}
}

// zones holds the UIDs of all zones.
type zones map[types.NamespacedName]types.UID

// sweeper removes the records of a zone as soon as the zone is gone. The garbage collector would do the
// same later, but until then, the name would still be resolved.
type sweeper struct {
	child.Keeper
	watching client.WithWatch
	// list reads all zones, and the version of the list.
	list  func(context.Context, *sweeper) (all zones, version string)
	known zones
}

// follow compares the zones with the known ones whenever a watch of the zones has ended.
func (s *sweeper) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		all, version := s.list(ctx, s)
		for name, uid := range s.known {
			if all[name] != uid {
				s.sweep(ctx, name, uid)
			}
		}
		s.known = all
		s.watch(ctx, version)
	}
	return nil
}

// watch follows the zones until the watch ends.
func (s *sweeper) watch(ctx context.Context, version string) {
	w, err := s.watching.Watch(ctx, &object.List[Spec, Status]{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version}})
	if err != nil {
		wait(ctx)
		return
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		zone, ok := e.Object.(*Zone)
		if !ok {
			return // the watch has expired
		}
		name := client.ObjectKeyFromObject(zone)
		if e.Type == "DELETED" {
			delete(s.known, name)
			s.sweep(ctx, name, zone.UID)
		} else {
			s.known[name] = zone.UID
		}
	}
}

// sweep removes the records of a zone, and tries again until they are gone.
func (s *sweeper) sweep(ctx context.Context, zone types.NamespacedName, uid types.UID) {
	for ctx.Err() == nil {
		gone, err := s.Remove(ctx, recordsOf(zone), func(records client.Object) bool {
			owner := metav1.GetControllerOf(records)
			return owner != nil && owner.UID == uid
		})
		if err == nil && gone {
			return
		}
		wait(ctx)
	}
}

// read lists all zones.
func (s *sweeper) read(ctx context.Context) (all zones, version string, err error) {
	var list object.List[Spec, Status]
	if err := s.watching.List(ctx, &list); err != nil {
		return nil, "", fmt.Errorf("listing the zones: %w", err)
	}
	all = zones{}
	for i := range list.Items {
		all[client.ObjectKeyFromObject(&list.Items[i])] = list.Items[i].UID
	}
	return all, list.ResourceVersion, nil
}

func wait(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}
