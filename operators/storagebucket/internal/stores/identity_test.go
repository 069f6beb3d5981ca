package stores

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/egress"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/refs"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
)

func TestAnIdentityThatCouldNotBeLoadedIsLoadedAtTheNextUse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	t.Setenv("AWS_CONFIG_FILE", file)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_PROFILE", "operator")
	guard, err := egress.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	r := &Registry{
		Refs:    refs.New(nil, nil),
		Options: Options{Guard: guard, EnvironmentNamespaces: []string{"*"}, RequestsPerSecond: 1, Concurrency: 1},
	}
	connect := func() Connection {
		t.Helper()
		c, err := r.Connect(t.Context(), types.NamespacedName{Name: "store"}, Location{
			Namespace:   "team-a",
			Endpoint:    "https://s3.example.com",
			Credentials: storagev1.Credentials{Source: storagev1.CredentialsFromEnvironment},
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := connect()
	if before.Problem == nil || before.Problem.Reason != s3store.ReasonCredentialsNotFound {
		t.Fatalf("without a profile the problem is %v", before.Problem)
	}
	if !before.Again {
		t.Error("Again is not set")
	}
	if again := connect(); again.Inputs != before.Inputs {
		t.Error("the same problem has different inputs")
	}
	if err := os.WriteFile(file, []byte("[profile operator]\naws_access_key_id = id\naws_secret_access_key = key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	after := connect()
	if after.Problem != nil {
		t.Fatalf("with a profile the problem is still %q", after.Problem)
	}
	if after.Inputs == before.Inputs {
		t.Error("the connection has the inputs of the problem, so its store is not checked at once")
	}
	if connect().Store != after.Store {
		t.Error("the connection is made again at each use")
	}
}
