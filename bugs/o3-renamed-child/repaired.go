package o3

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// removed deletes the ConfigMap that an old version has made for the kiosk.
//
// RIGHT: the ConfigMap is deleted only once the new one exists, and only if the kiosk owns it.
func (r *reconciler) removed(ctx context.Context, kiosk *Kiosk) error {
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = kiosk.Namespace, oldName(kiosk)
	_, err := r.Remove(ctx, m, child.OwnedBy(kiosk))
	return err
}
