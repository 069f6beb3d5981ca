package monitoring

import (
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// quiet holds two hours of the manager's metrics, one sample per minute, for which no alert
// fires.
const quiet = `
load 1m
  leader_election_master_status{name="storagebucket.storage.koboshi.dev"} 1x120
  storagebucket_buckets{condition="Healthy",status="True"} 5x120
  storagebucket_buckets{condition="Healthy",status="False"} 0x120
  storagebucket_stores{condition="Healthy",status="False"} 0x120
  storagebucket_store_checks_total{store="a/b",reason="ProbeSucceeded"} 0+2x120
  storagebucket_store_checks_total{store="a/slow",reason="ProbeSucceeded"} 1x120
  storagebucket_store_checks_total{store="a/b",reason="Timeout"} 3x120
  storagebucket_probes_total{store="a/b",reason="ProbeSucceeded"} 0+10x120
  storagebucket_probes_total{store="a/b",reason="AccessDenied"} 4x120
  storagebucket_drift_repaired_total{setting="tags"} 1x120
  storagebucket_due_lag_seconds_bucket{le="1"} 0+10x120
  storagebucket_due_lag_seconds_bucket{le="10"} 0+10x120
  storagebucket_due_lag_seconds_bucket{le="+Inf"} 0+10x120`

func TestAlertsFireForWhatTheyAreFor(t *testing.T) {
	for _, tc := range []struct {
		name, load string
		want       []string
	}{
		{"all is well", quiet, nil},
		{"nothing is scraped", "\nload 1m\n  up 0x120\n", []string{"StorageBucketOperatorAbsent"}},
		{"no manager leads", `
load 1m
  leader_election_master_status{name="storagebucket.storage.koboshi.dev",pod="1"} 0x120
  leader_election_master_status{name="storagebucket.storage.koboshi.dev",pod="2"} 0x120
`, []string{"StorageBucketOperatorAbsent"}},
		{"a store does not answer", quiet + `
  storagebucket_store_checks_total{store="a/down",reason="ProbeSucceeded"} 7x120
  storagebucket_store_checks_total{store="a/down",reason="EndpointUnreachable"} 0+12x120
`, []string{"StorageBucketStoreDown"}},
		{"a store fails now and then", quiet + `
  storagebucket_store_checks_total{store="a/b",reason="ServerError"} 0+1x120
`, nil},
		{"a store refuses the credentials", quiet + `
  storagebucket_store_checks_total{store="a/locked",reason="InvalidCredentials"} 0+12x120
`, []string{"StorageBucketCredentialsRefused"}},
		{"the Secret of a store is missing", quiet + `
  storagebucket_stores{condition="Healthy",status="False",pod="1"} 1x120
`, []string{"StorageBucketStoreUnhealthy"}},
		{"the credentials are refused for a bucket, and were refused once for the store", quiet + `
  storagebucket_store_checks_total{store="a/b",reason="InvalidCredentials"} 1x120
  storagebucket_probes_total{store="a/b",reason="InvalidCredentials"} 0+2x120
`, []string{"StorageBucketCredentialsRefused"}},
		{"two managers see an unhealthy bucket", quiet + `
  storagebucket_buckets{condition="Healthy",status="False",pod="1"} 1x120
  storagebucket_buckets{condition="Healthy",status="False",pod="2"} 1x120
`, []string{"StorageBucketUnhealthy"}},
		{"probes are late", quiet + `
  storagebucket_due_lag_seconds_bucket{pod="2",le="1"} 0x120
  storagebucket_due_lag_seconds_bucket{pod="2",le="10"} 0+10x120
  storagebucket_due_lag_seconds_bucket{pod="2",le="+Inf"} 0+10x120
`, []string{"StorageBucketDueLagHigh"}},
		{"drift comes back", quiet + `
  storagebucket_drift_repaired_total{setting="policy"} 0+0.1x120
`, []string{"StorageBucketDriftRepairedRepeatedly"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := firing(t, tc.load); !slices.Equal(got, tc.want) {
				t.Errorf("firing: %v, want %v", got, tc.want)
			}
		})
	}
}

// firing returns the alerts that fire at the end of the loaded samples, each
// only once.
func firing(t *testing.T, load string) []string {
	t.Helper()
	storage := promqltest.LoadedStorage(t, load)
	engine := promqltest.NewTestEngine(t, false, 5*time.Minute, promqltest.DefaultMaxSamplesPerQuery)
	var all []string
	for _, rule := range rules(t) {
		query, err := engine.NewInstantQuery(t.Context(), storage, nil, rule.Expr.String(), time.Unix(0, 0).Add(2*time.Hour))
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		result, err := query.Exec(t.Context()).Vector()
		if err != nil {
			t.Fatalf("%s: %v", rule.Alert, err)
		}
		all = append(all, names(rule.Alert, result)...)
		query.Close()
	}
	return all
}

func names(alert string, result promql.Vector) []string {
	var all []string
	for range result {
		all = append(all, alert)
	}
	return all
}
