package x4

import "context"

// again returns the error, so that the Service is tried again.
//
// WRONG: a Service whose name begins with a digit is never valid, and the user sees only that nothing
// happens. The bug is taken from kubeflow/training-operator#1745.
func (r *reconciler) again(_ context.Context, _ *Flotilla, err error) error { return err }
