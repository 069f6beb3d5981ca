package install

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
)

// set builds values from dotted paths.
func set(pairs ...any) map[string]any {
	values := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		at := values
		path := strings.Split(pairs[i].(string), ".")
		for _, key := range path[:len(path)-1] {
			if at[key] == nil {
				at[key] = map[string]any{}
			}
			at = at[key].(map[string]any)
		}
		at[path[len(path)-1]] = pairs[i+1]
	}
	return values
}

// everything returns values that enable each feature of config/, with the same settings.
func everything() map[string]any {
	return set(
		"certManager.enabled", true,
		"metrics.serviceMonitor.enabled", true,
		"prometheusRule.enabled", true,
		"grafanaDashboard.enabled", true,
		"networkPolicy.enabled", true,
		"notify.enabled", true,
		"usage.enabled", true,
	)
}

// allFlags returns the values of everything(), and all values that set a flag.
func allFlags() map[string]any {
	values := everything()
	for key, value := range set(
		"namespaces", []any{"team-a", "team-b"},
		"allowedEndpoints", []any{"*.example.com", "10.0.0.0/8"},
		"environmentCredentialsNamespaces", []any{"platform"},
		"clusterID", "blue",
		"maxConcurrentReconciles", 1000000,
		"storeRequestsPerSecond", 0.5,
		"storeConcurrency", 2,
		"statusHeartbeat", "0",
		"log.level", "debug",
		"log.encoder", "console",
		"log.stacktraceLevel", "panic",
		"log.timeEncoding", "rfc3339",
	) {
		values[key] = value
	}
	values["notify"].(map[string]any)["tokenSecret"] = map[string]any{"name": "notify-token"}
	usage := values["usage"].(map[string]any)
	for key, value := range map[string]any{
		"maxObjects": 2000000, "maxAge": "1m", "maxRequests": 1, "concurrency": 1, "storeConcurrency": 1,
		"storeRequestsPerSecond": 1000000.0, "requestTimeout": "30s", "verbosity": 0,
	} {
		usage[key] = value
	}
	return values
}

func TestTheChartHasNothingThatLintObjectsTo(t *testing.T) {
	for name, values := range map[string]map[string]any{
		"default": nil, "everything": everything(), "all flags": allFlags(),
	} {
		for _, message := range lint.RunAll(chartDir, values, namespace).Messages {
			if message.Severity > support.InfoSev {
				t.Errorf("%s: %v", name, message)
			}
		}
	}
}

func TestABadValueIsNamed(t *testing.T) {
	for _, tc := range []struct {
		values map[string]any
		want   string
	}{
		{set("replica", 2), "replica"},
		{set("replicas", "two"), "/replicas"},
		{set("image.pullPolicy", "Sometimes"), "/image/pullPolicy"},
		{set("image.digest", "sha256:abc"), "/image/digest"},
		{set("image.digest", strings.Repeat("a", 64)), "/image/digest"},
		{set("namespaces", "team-a"), "/namespaces"},
		{set("namespaces", []any{"Team_A"}), "/namespaces/0"},
		{set("namespaces", []any{"*"}), "/namespaces/0"},
		{set("allowedEndpoints", []any{"a.example.com,b.example.com"}), "/allowedEndpoints/0"},
		{set("allowedEndpoints", []any{"https://s3.example.com"}), "/allowedEndpoints/0"},
		{set("maxConcurrentReconciles", 0), "/maxConcurrentReconciles"},
		{set("storeRequestsPerSecond", -1), "/storeRequestsPerSecond"},
		{set("statusHeartbeat", "10 minutes"), "/statusHeartbeat"},
		{set("log.level", "loud"), "/log/level"},
		{set("webhook.port", 443), "/webhook/port"},
		{set("certManager.issuerRef", map[string]any{"kind": "ClusterIssuer"}), "/certManager/issuerRef"},
		{set("notify.service.type", "Public"), "/notify/service/type"},
		{set("usage.verbosity", 9), "/usage/verbosity"},
		{set("extraArgs", []any{"leader-elect=false"}), "/extraArgs/0"},
		{set("extraEnv", []any{map[string]any{"value": "x"}}), "/extraEnv/0"},
		{set("networkPolicy.enabled", "yes"), "/networkPolicy/enabled"},
	} {
		_, err := render(t, tc.values)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: error %v does not name %s", tc.values, err, tc.want)
		}
	}
}

func TestAnImageIsNamedByItsTagOrItsDigest(t *testing.T) {
	digest := "sha256:" + strings.Repeat("a1", 32)
	for _, tc := range []struct {
		values map[string]any
		want   string
	}{
		{set("image.repository", "ghcr.io/acme/stb"), "ghcr.io/acme/stb:" + loadChart(t).AppVersion()},
		{set("image.tag", "2.0"), "storagebucket:2.0"},
		{set("image.digest", digest), "storagebucket@" + digest},
		{set("image.tag", "2.0", "image.digest", digest), "storagebucket@" + digest},
	} {
		tc.values["usage"] = map[string]any{"enabled": true}
		all := containers(rendered(t, tc.values))
		if len(all) != 2 {
			t.Fatalf("%v: %d containers, want those of the manager and the usage server", tc.values, len(all))
		}
		for _, c := range all {
			if c.Image != tc.want {
				t.Errorf("%v: image %s of %s, want %s", tc.values, c.Image, c.Name, tc.want)
			}
		}
	}
}

func TestTheChartRendersWithAnyOfItsSwitches(t *testing.T) {
	for _, name := range []string{
		"certManager.enabled", "crds.enabled", "crds.keep", "metrics.enabled", "metrics.serviceMonitor.enabled",
		"prometheusRule.enabled", "grafanaDashboard.enabled", "usage.enabled", "rbac.aggregate",
		"podDisruptionBudget.enabled", "networkPolicy.enabled",
	} {
		for _, on := range []bool{true, false} {
			rendered(t, set(name, on))
		}
	}
	rendered(t, everything())
	rendered(t, allFlags())
}
