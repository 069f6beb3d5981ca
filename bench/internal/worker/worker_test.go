package worker

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/bench/internal/contestant"
	"github.com/koboshi-dev/koboshi/bench/internal/family"
	"github.com/koboshi-dev/koboshi/bench/internal/measure"
)

// If the variable role is set, the test binary acts as the benchmark, which is then
// killed. The variable work names the folder of the benchmark.
const (
	role = "WORKER_TEST_ASSETS"
	work = "WORKER_TEST_FOLDER"
)

func TestMain(m *testing.M) {
	switch assets := os.Getenv(role); {
	case len(os.Args) == 3 && os.Args[1] == Argument:
		if err := Main(context.Background(), os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case assets != "":
		corner, err := NewCorner(contestant.Contestant{Name: "hanging", Assets: assets}, os.Getenv(work))
		if err != nil {
			panic(err)
		}
		fmt.Println(corner.mark)
		_, _ = corner.Run(context.Background(), begin(), measure.Bout{})
	default:
		os.Exit(m.Run())
	}
}

func begin() measure.Measure {
	m, err := measure.Lookup("start")
	if err != nil {
		panic(err)
	}
	return m
}

// hanging returns a folder of assets whose etcd never answers, starts a process that leaves
// its session, and ignores SIGTERM.
func hanging(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid of util-linux")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\n[ \"$1\" = --help ] && exit 0\ntrap '' TERM\nsetsid sleep 600 &\nsleep 600\nsleep 600\n"
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// eventually waits until is(n) returns true, where n is the number of living processes.
func eventually(t *testing.T, f family.Family, what string, is func(n int) bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		members, err := f.Members()
		if err != nil {
			t.Fatal(err)
		}
		if is(len(members)) {
			return
		}
		if time.Now().After(deadline) {
			_, _ = f.End(0)
			t.Fatalf("%s: %d processes: %+v", what, len(members), members)
		}
	}
}

// allRun reports whether at least four processes are running: the bout, its etcd, and the two
// processes that the script starts.
func allRun(n int) bool  { return n >= 4 }
func noneRun(n int) bool { return n == 0 }

func TestAnInterruptLeavesNoProcess(t *testing.T) {
	t.Parallel()
	corner, err := NewCorner(contestant.Contestant{Name: "hanging", Assets: hanging(t)}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		_, err := corner.Run(ctx, begin(), measure.Bout{})
		result <- err
	}()
	relatives := family.Family{Mark: corner.mark}
	eventually(t, relatives, "while it starts", allRun)
	interrupt()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the interrupted bout returned %v", err)
	}
	eventually(t, relatives, "after Run has returned", noneRun)
}

func TestAStartThatHangsIsBounded(t *testing.T) {
	t.Parallel()
	corner, err := NewCorner(contestant.Contestant{Name: "hanging", Assets: hanging(t)}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	hurried := begin()
	hurried.Timeout = 300 * time.Millisecond
	if _, err = corner.Run(t.Context(), hurried, measure.Bout{}); err == nil || !strings.Contains(err.Error(), "not done within 300ms") {
		t.Errorf("the bout returned %v", err)
	}
	eventually(t, family.Family{Mark: corner.mark}, "after Run has returned", noneRun)
}

func TestAKilledBenchmarkLeavesNoProcess(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "work")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	bench := exec.Command(os.Args[0])
	bench.Env = append(os.Environ(), role+"="+hanging(t), work+"="+dir)
	out, err := bench.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := bench.Start(); err != nil {
		t.Fatal(err)
	}
	mark, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	relatives := family.Family{Mark: strings.TrimSpace(mark)}
	eventually(t, relatives, "while it starts", allRun)
	if err := bench.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = bench.Wait()
	eventually(t, relatives, "after the kill", noneRun)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the benchmark's folder is left: %v", err)
	}
}

func TestAFailedBoutTellsItsReason(t *testing.T) {
	corner, err := NewCorner(contestant.Contestant{Name: "absent", Assets: t.TempDir()}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, err = corner.Run(t.Context(), begin(), measure.Bout{})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("without programs to start, the bout returned %v", err)
	}
}

func TestNothingOfTheCallersEnvironmentSteersEnvtest(t *testing.T) {
	got := clean([]string{
		"PATH=/bin", "USE_EXISTING_CLUSTER=true", "TEST_ASSET_ETCD=/x", "KUBEBUILDER_ASSETS=/x",
		"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=1s", "KOBOSHI_CONTROLLERS=gc", "KUBECONFIG=/x", "TMPDIR=/x",
		"ENVTEST_USE_ENV=1", "HOME=/home/x", "A=KUBECONFIG=1",
	})
	if diff := cmp.Diff([]string{"PATH=/bin", "HOME=/home/x", "A=KUBECONFIG=1"}, got); diff != "" {
		t.Error(diff)
	}
}
