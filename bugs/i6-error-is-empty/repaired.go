package i6

import "context"

// orAgain tries again until the zones can be read: nothing is known about them until then.
func orAgain(ctx context.Context, s *sweeper) (all zones, version string) {
	for ctx.Err() == nil {
		all, version, err := s.read(ctx)
		if err == nil {
			return all, version
		}
		wait(ctx)
	}
	return s.known, "" // the controller exits
}
