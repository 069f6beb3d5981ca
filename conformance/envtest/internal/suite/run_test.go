package suite

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSpecsOfBothFrameworksAreRead(t *testing.T) {
	got, err := specs(filepath.Join("testdata", "run.json"), filepath.Join("testdata", "run.log"))
	if err != nil {
		t.Fatal(err)
	}
	why := got[len(got)-1].Why
	got[len(got)-1].Why = ""
	want := []Spec{
		{Name: "TestPlain/sub", Outcome: "failed"},
		{Name: "TestPlain", Outcome: "failed"},
		{Name: "TestSkipped", Outcome: "skipped"},
		{Name: "TestSuite", Outcome: "passed"},
		{Name: "[BeforeSuite]", Outcome: "passed", Ginkgo: true},
		{Name: "Doll rights itself", Outcome: "passed", Ginkgo: true},
		{Name: "Doll rights itself (2)", Outcome: "pending", Ginkgo: true},
		{Name: "Doll stays down", Outcome: "failed", Ginkgo: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, part := range []string{"doll_test.go:20", "it got up", "what it wrote"} {
		if !strings.Contains(why, part) {
			t.Errorf("the failure does not contain %q: %s", part, why)
		}
	}
}

func TestACrashLeavesTheSpecsThatEnded(t *testing.T) {
	got, err := specs(filepath.Join("testdata", "none.json"), filepath.Join("testdata", "run.log"))
	if err != nil || len(got) != 4 {
		t.Errorf("read %v: %v, want the four Go tests", got, err)
	}
}

func TestASuiteSeesOnlyTheProgramsUnderTest(t *testing.T) {
	got := environment([]string{
		"PATH=/bin", "KUBEBUILDER_ASSETS=/a", "TEST_ASSET_ETCD=/b", "USE_EXISTING_CLUSTER=true",
		"KUBECONFIG=/c", "KOBOSHI_CONTROLLERS=gc", "HOME=/d",
	}, "/assets")
	if diff := cmp.Diff([]string{"PATH=/bin", "HOME=/d", "KUBEBUILDER_ASSETS=/assets"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestASuiteIsChosenByNameOrRefused(t *testing.T) {
	all := []*Suite{{Name: "pkg/cache"}, {Name: "pkg/client"}, {Name: "pkg/webhook"}}
	for _, test := range []struct{ names, want []string }{
		{nil, []string{"pkg/cache", "pkg/client", "pkg/webhook"}},
		{[]string{"pkg/webhook", " ./pkg/cache/"}, []string{"pkg/webhook", "pkg/cache"}},
	} {
		got, err := choose(all, test.names)
		if diff := cmp.Diff(test.want, Names(got)); diff != "" || err != nil {
			t.Errorf("%v: %v %s", test.names, err, diff)
		}
	}
	if _, err := choose(all, []string{"pkg/log"}); err == nil || !strings.Contains(err.Error(), "pkg/cache,pkg/client") {
		t.Errorf("choosing an unknown name: %v, want an error that names the known ones", err)
	}
}

func TestServersThatASuiteHasLeftAreKilled(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("there is no /proc")
	}
	mark := "CONFORMANCE_RUN=" + t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	left, other := exec.CommandContext(ctx, "cat"), exec.CommandContext(ctx, "cat")
	left.Env, other.Env = []string{mark}, []string{mark + "0"}
	for _, cmd := range []*exec.Cmd{left, other} {
		in, err := cmd.StdinPipe() // keeps it running
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = in.Close() }()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	killMarked(mark)
	if err := left.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("the process that was left ended with %v, want it to be killed", err)
	}
	if err := other.Process.Signal(os.Interrupt); err != nil {
		t.Errorf("a process with another mark is gone: %v", err)
	}
	_ = other.Wait() // interrupted
}
