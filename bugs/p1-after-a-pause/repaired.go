package p1

import "context"

// both creates or repairs both objects each time, whatever already exists.
func (r *reconciler) both(ctx context.Context, o *Rollout) (bool, error) {
	for _, suffix := range []string{"-config", "-token"} {
		if there, err := r.ensure(ctx, o, suffix); err != nil || !there {
			return false, err
		}
	}
	return true, nil
}
