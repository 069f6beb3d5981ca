package x3

import "context"

// skipped does nothing without metrics.
//
// WRONG: if metrics were switched on before, their Service is still there. The bug is taken from
// Percona's operator for MongoDB (K8SPSMDB-674), which kept the Services of Pods that were no longer
// exposed.
func (r *reconciler) skipped(context.Context, *Lighthouse) (bool, error) { return true, nil }
