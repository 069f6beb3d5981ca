package main

import (
	"flag"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestMetricsAreServedToNobodyWhoIsNotKnown(t *testing.T) {
	for _, tc := range []struct {
		address string
		secure  bool
		ok      bool
		filter  bool
	}{
		{"0", true, true, false},
		{"", true, true, false},
		{"0", false, true, false},
		{":8443", true, true, true},
		{":8080", false, false, false},
		{"0.0.0.0:8080", false, false, false},
		{"192.0.2.1:8080", false, false, false},
		{"8080", false, false, false},
		{"127.0.0.1:8080", false, true, false},
		{"[::1]:8080", false, true, false},
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

func TestTheMetricsCertificateIsTheOneThatTheFlagNames(t *testing.T) {
	var o options
	f := flag.NewFlagSet("", flag.ContinueOnError)
	o.bind(f)
	if err := f.Parse([]string{"--metrics-bind-address=:8443", "--metrics-cert-dir=/certs"}); err != nil {
		t.Fatal(err)
	}
	// The default file names of a certificate in controller-runtime are the keys of a TLS
	// Secret.
	got, err := o.metricsOptions()
	if err != nil || got.CertDir != "/certs" || got.CertName != "" || got.KeyName != "" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestNamespacesAreSplitAtCommas(t *testing.T) {
	for in, want := range map[string]int{"": 0, "a": 1, "a,b": 2, "a, b,": 2} {
		if got := split(in); len(got) != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}

func TestWhatOnlyThisMachineMaySeeIsRefusedElsewhere(t *testing.T) {
	for address, ok := range map[string]bool{"0": true, "127.0.0.1:6060": true, ":6060": false, "0.0.0.0:6060": false, "192.0.2.1:6060": false} {
		if _, err := (options{pprofAddr: address}).pprofAddress(); (err == nil) != ok {
			t.Errorf("--pprof-bind-address=%s: %v", address, err)
		}
		if address == "0" || ok {
			continue
		}
		if err := addNotify(nil, options{notifyAddr: address}, nil); err == nil {
			t.Errorf("--notify-bind-address=%s without a certificate was accepted", address)
		}
	}
}

func TestLimitsThatLetNothingPassAreRefused(t *testing.T) {
	good := options{storeRate: 1, storeConcurrency: 1, maxConcurrent: 1}
	if _, err := good.storeOptions(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*options){
		"--store-requests-per-second": func(o *options) { o.storeRate = 0 },
		"--store-concurrency":         func(o *options) { o.storeConcurrency = -1 },
		"--max-concurrent-reconciles": func(o *options) { o.maxConcurrent = 0 },
		"--allowed-endpoints":         func(o *options) { o.allowedEndpoints = "10.0.0.0/99" },
	} {
		o := good
		change(&o)
		if _, err := o.storeOptions(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestTheManagerStopsBeforeItsPodIsKilled(t *testing.T) {
	for _, manifest := range []string{"../config/manager/manager.yaml", "../charts/storagebucket/templates/deployment.yaml"} {
		text, err := os.ReadFile(manifest)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`terminationGracePeriodSeconds: (\d+)`).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s sets no grace period", manifest)
		}
		seconds, err := strconv.Atoi(string(found[1]))
		if err != nil {
			t.Fatal(err)
		}
		if grace := time.Duration(seconds) * time.Second; shutdownTimeout >= grace {
			t.Errorf("the manager may take %v to stop, and %s gives it %v", shutdownTimeout, manifest, grace)
		}
	}
}
