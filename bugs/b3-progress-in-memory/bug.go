package b3

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
)

// byPhase removes a member in phases. In phase Ongoing, the member must exist and is
// deleted. In phase Finalizing, the member must be gone, its claim is deleted, and then the
// phase is cleared.
//
// WRONG: the phase Finalizing is stored only after the member was deleted. If the process
// dies before the phase is stored, or storing it fails, the phase is still Ongoing but the
// member is gone. Every later attempt fails because the member is missing, and the claim is
// never deleted. The bug is taken from Orange-OpenSource/casskop#370.
func byPhase(ctx context.Context, k child.Keeper, ring *Ring) (bool, error) {
	last, err := surplus(ctx, k.Client, ring)
	if err != nil || (last < 0 && ring.Status.Operation == "") {
		return err == nil, err
	}
	switch ring.Status.Operation {
	case "Ongoing":
		member := memberOf(ring, last)
		if err := k.Get(ctx, client.ObjectKeyFromObject(member), member); err != nil {
			return false, fmt.Errorf("reading the member to remove: %w", err)
		}
		ring.Status.Operation = "Finalizing"
		if _, err := k.Remove(ctx, member, child.OwnedBy(ring)); err != nil {
			return false, err
		}
	case "Finalizing":
		if last >= 0 {
			member := memberOf(ring, last)
			if err := k.Get(ctx, client.ObjectKeyFromObject(member), member); !apierrors.IsNotFound(err) {
				return false, err
			}
			return false, client.IgnoreNotFound(k.Delete(ctx, claimOf(ring, last)))
		}
		ring.Status.Operation = ""
	default:
		ring.Status.Operation = "Ongoing"
	}
	return false, client.IgnoreNotFound(k.Status().Update(ctx, ring))
}
