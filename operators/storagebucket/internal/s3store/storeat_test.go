package s3store

import (
	"testing"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/egress"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

const (
	testKeyID  = "AKIDTESTTESTTEST"
	testSecret = "s3cr3t-that-must-not-appear"
	testToken  = "t0ken-that-must-not-appear"
)

// configAt returns a configuration for a store at the server, with generous limits.
func configAt(tb testing.TB, server *faultserver.Server) Config {
	tb.Helper()
	endpoint, err := ParseEndpoint(server.URL)
	if err != nil {
		tb.Fatal(err)
	}
	guard, err := egress.New([]string{"127.0.0.1"})
	if err != nil {
		tb.Fatal(err)
	}
	return Config{
		Endpoint:    endpoint,
		Region:      "us-east-1",
		PathStyle:   true,
		RootCAs:     server.RootCAs(),
		Credentials: Credentials{AccessKeyID: testKeyID, SecretAccessKey: testSecret, SessionToken: testToken},
		Guard:       guard,
		Limiter:     NewLimiter(1e6, 16),
	}
}

func storeAt(tb testing.TB, server *faultserver.Server) *Store {
	tb.Helper()
	return storeFrom(tb, configAt(tb, server))
}

func storeFrom(tb testing.TB, c Config) *Store {
	tb.Helper()
	s := New(c)
	tb.Cleanup(s.Close)
	return s
}
