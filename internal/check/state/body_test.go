package state

import (
	"testing"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// The point of a fault must be found again in another check, which hashes the values of
// Secrets with a different key.
func TestValuesOfSecretsDoNotTellRequestsApart(t *testing.T) {
	target := trace.Target{Version: "v1", Resource: "secrets", Namespace: "default", Name: "a"}
	secret := func(token any, kind string) string {
		return Body(nil, target, map[string]any{"kind": "Secret", "data": map[string]any{"token": token}, "type": kind})
	}
	one := secret("redacted:sha256:00112233", "Opaque")
	if other := secret("redacted:sha256:44556677", "Opaque"); other != one {
		t.Error("requests are distinguished by the hash of a value")
	}
	if other := secret("redacted:sha256:00112233", "other"); other == one {
		t.Error("requests with another type are the same")
	}
	if other := secret(nil, "Opaque"); other == one {
		t.Error("a request without the value is the same")
	}
}
