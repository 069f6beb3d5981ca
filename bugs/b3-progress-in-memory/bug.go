package b3

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/keep"
)

// byPhase takes a member away in three phases: Ongoing, in which it has to be there
// and is deleted; Finalizing, in which it has to be gone and its claim is deleted;
// and nothing.
//
// WRONG: that it is Finalizing is written down after the member was deleted. If it
// dies in between, or cannot write, the member that has to be there in Ongoing is
// gone, every try ends with that error, and the claim is never deleted. Taken from
// Orange-OpenSource/casskop#370.
func byPhase(ctx context.Context, k keep.Keeper, ring *Ring) (bool, error) {
	last, err := surplus(ctx, k.Client, ring)
	if err != nil || (last < 0 && ring.Status.Operation == "") {
		return err == nil, err
	}
	switch ring.Status.Operation {
	case "Ongoing":
		member := memberOf(ring, last)
		if err := k.Get(ctx, client.ObjectKeyFromObject(member), member); err != nil {
			return false, fmt.Errorf("reading the member that is taken away: %w", err)
		}
		ring.Status.Operation = "Finalizing"
		if err := k.Remove(ctx, member); err != nil {
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
