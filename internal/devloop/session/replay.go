package session

import (
	"context"

	"github.com/koboshi-dev/koboshi/internal/devloop/webhook"
)

// Replay sends a recorded review again to the manager as it runs now. See
// webhook.Listener.Replay.
func (s *Session) Replay(ctx context.Context, path string, review []byte) (webhook.Review, error) {
	return s.listener.Replay(ctx, path, review)
}
