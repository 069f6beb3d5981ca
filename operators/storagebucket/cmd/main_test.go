package main

import "testing"

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

func TestNamespacesAreSplitAtCommas(t *testing.T) {
	for in, want := range map[string]int{"": 0, "a": 1, "a,b": 2, "a, b,": 2} {
		if got := split(in); len(got) != want {
			t.Errorf("%q: got %q", in, got)
		}
	}
}
