package x4

import "context"

// told writes the reason to the status.
//
// RIGHT: the user can read what to change, and the controller waits for the change.
func (r *reconciler) told(ctx context.Context, flotilla *Flotilla, err error) error {
	return r.report(ctx, flotilla, "the Service is invalid: "+err.Error())
}
