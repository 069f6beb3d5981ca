package apiserver

import (
	"errors"
	"flag"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
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
		t.Errorf("%v, want the error that --allow-privileged does not accept the value perhaps", err)
	}
}

var update = flag.Bool("update", false, "rewrite the list of flags")

func TestTheListOfFlagsIsThatOfKubeAPIServer(t *testing.T) {
	_, fs := newOptions()
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	slices.Sort(names)
	got := strings.Join(names, "\n") + "\n"
	const file = "../../envtest/shim/kube-apiserver.flags"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(listed), got); diff != "" {
		t.Errorf("the list of flags is out of date; run this test with -update (-listed +upstream):\n%s", diff)
	}
}
