package apiserver

import (
	"errors"
	"net"
	"strings"
	"testing"
)

func TestAWrongFlagIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	for _, flag := range []string{"--no-such-flag=1", "--service-cluster-ip-range", "--max-requests-inflight=many"} {
		_, err := New(t.Context(), Config{Flags: []string{flag}, Listener: listener})
		name, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if !errors.As(err, new(*FlagError)) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want a FlagError that names %s", flag, err, name)
		}
	}
}

func TestFlagsMayBeWrittenWithUnderscores(t *testing.T) {
	_, err := New(t.Context(), Config{Flags: []string{"--allow_privileged=perhaps"}})
	if !errors.As(err, new(*FlagError)) || !strings.Contains(err.Error(), "--allow-privileged") {
		t.Errorf("%v, want that --allow-privileged cannot be perhaps", err)
	}
}
