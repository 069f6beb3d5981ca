package main

import (
	"strings"
	"testing"
)

func TestBadFlagIsNamed(t *testing.T) {
	good := []string{"--tls-cert-file=c", "--tls-private-key-file=k"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "--tls-cert-file"},
		{append(good, "-v=8"), "-v must be"}, // client-go would log Secrets
		{append(good, "-v=-1"), "-v must be"},
		{append(good, "--max-objects=0"), "--max-objects"},
		{append(good, "--request-timeout=-1s"), "--request-timeout"},
		{append(good, "--store-requests-per-second=0"), "--store-requests-per-second"},
		{append(good, "--allowed-endpoints=10.0.0.0/33"), "--allowed-endpoints"},
		{append(good, "extra"), "extra"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			if _, err := parseOptions(c.args); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v does not name %s", err, c.want)
			}
		})
	}
	if _, err := parseOptions(append(good, "-v=7", "--allowed-endpoints=s3.example.com, 10.0.0.0/8")); err != nil {
		t.Errorf("good flags: %v", err)
	}
}
