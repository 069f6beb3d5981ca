package i6

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
)

// orNone has the bug of kubernetes-sigs/external-dns#2858. If the API server cannot be reached, the
// error is only logged, and the work goes on with the sources that could be read, which are none. So
// all records are deleted as soon as the API server is back.
func orNone(ctx context.Context, s *sweeper) (all zones, version string) {
	all, version, err := s.read(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "no zones")
		return zones{}, ""
	}
	return all, version
}
