package main

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/overrides"
)

func TestMetricsAreServedToNobodyWhoIsNotKnown(t *testing.T) {
	for _, tc := range []struct {
		address            string
		secure, ok, filter bool
	}{
		{"0", true, true, false},
		{"0", false, true, false},
		{":8443", true, true, true},
		{":8080", false, false, false},
		{"192.0.2.1:8080", false, false, false},
		{"127.0.0.1:8080", false, true, false},
		{"localhost:8080", false, true, false},
	} {
		got, err := options{metricsAddr: tc.address, metricsSecure: tc.secure}.metricsOptions()
		if (err == nil) != tc.ok {
			t.Errorf("%+v: error %v", tc, err)
		}
		if (got.FilterProvider != nil) != tc.filter || got.SecureServing != tc.filter {
			t.Errorf("%+v: authentication %v, TLS %v", tc, got.FilterProvider != nil, got.SecureServing)
		}
	}
}

func TestFlagsThatMakeNoSenseAreRefusedByName(t *testing.T) {
	for name, args := range map[string][]string{
		"--viewer-image":              {"--viewer-image="},
		"--viewer-requests":           {"--viewer-requests=cpu"},
		"--viewer-limits":             {"--viewer-limits=memory=much"},
		"--content-limit":             {"--content-limit=0"},
		"--progress-deadline":         {"--progress-deadline=-1s"},
		"--max-concurrent-reconciles": {"--max-concurrent-reconciles=0"},
	} {
		var o options
		f := flag.NewFlagSet("", flag.ContinueOnError)
		o.bind(f)
		if err := f.Parse(append([]string{"--viewer-image=v:1"}, args...)); err != nil {
			t.Fatal(err)
		}
		if _, err := o.controllerOptions(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestResourcesOfViewersAreRead(t *testing.T) {
	got, err := resourceList("", "cpu=10m, memory=32Mi")
	if err != nil || got.Cpu().MilliValue() != 10 || got.Memory().Value() != 32<<20 {
		t.Errorf("%v %v", got, err)
	}
}

// If the manager is killed before it releases its lease, the next manager must wait until
// the lease expires.
func TestTheManagerStopsWithinTheTimeThatItsPodIsGiven(t *testing.T) {
	for _, file := range []string{"../config/manager/manager.yaml", "../charts/markdownview/templates/deployment.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`terminationGracePeriodSeconds: (\d+)`).FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s sets no terminationGracePeriodSeconds", file)
		}
		grace, err := time.ParseDuration(string(m[1]) + "s")
		if err != nil || shutdownTimeout >= grace {
			t.Errorf("%s is not less than the %s in %s (%v)", shutdownTimeout, grace, file, err)
		}
	}
}

func TestTheOldFlagForNamespacesStillWorks(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"--namespaces=a,b"}, "a b"},
		{[]string{"--watch-namespaces=a,b"}, "a b"},
		{[]string{"--namespaces=a", "--watch-namespaces=a"}, "a"},
		{[]string{"--namespaces=a", "--watch-namespaces=b"}, "error"},
	} {
		var o options
		f := flag.NewFlagSet("", flag.ContinueOnError)
		o.bind(f)
		if err := f.Parse(tc.args); err != nil {
			t.Fatal(err)
		}
		namespaces, err := o.watched()
		got := strings.Join(namespaces, " ")
		if err != nil {
			got = "error"
		}
		if got != tc.want {
			t.Errorf("%v: %q, want %q (%v)", tc.args, got, tc.want, err)
		}
	}
}

func TestTheMetricsCertificateIsTheOneThatFlagsName(t *testing.T) {
	var o options
	f := flag.NewFlagSet("", flag.ContinueOnError)
	o.bind(f)
	if err := f.Parse([]string{"--metrics-bind-address=:8443", "--metrics-cert-dir=/certs"}); err != nil {
		t.Fatal(err)
	}
	got, err := o.metricsOptions()
	if err != nil || got.CertDir != "/certs" || got.CertName != "tls.crt" || got.KeyName != "tls.key" {
		t.Errorf("%+v %v", got, err)
	}
	o.metricsCertDir = ""
	if got, _ := o.metricsOptions(); got.CertDir != "" {
		t.Errorf("without a directory the certificate is read from %q", got.CertDir)
	}
}

func TestTheDefaultOverridesAreValid(t *testing.T) {
	var o options
	o.bind(flag.NewFlagSet("", flag.ContinueOnError))
	if _, err := overrides.Parse(split(o.authorOverrides)...); err != nil || o.authorOverrides == "" {
		t.Errorf("%q: %v", o.authorOverrides, err)
	}
}
