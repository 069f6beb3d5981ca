package contract

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

const (
	watcher      = "watcher"
	stopper      = "stopper"
	busy         = "busy"
	markVariable = "CONTRACT_MARK"
)

// watchForever acts as a suite that starts an environment and holds a watch
// open until it is killed.
func watchForever() error {
	env := newEnvironment()
	_, _ = fmt.Fprintln(os.Stdout, "starting")
	if _, err := env.Start(); err != nil {
		return err
	}
	c, err := kubernetes.NewForConfig(env.Config)
	if err != nil {
		return err
	}
	w, err := c.CoreV1().ConfigMaps("").Watch(context.Background(), metav1.ListOptions{})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(os.Stdout, "watching")
	for range w.ResultChan() {
	}
	_, _ = fmt.Fprintln(os.Stdout, "ended")
	select {}
}

// stopAtOnce acts as a suite that starts an environment and stops it immediately.
func stopAtOnce() error {
	env := newEnvironment()
	if _, err := env.Start(); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(os.Stdout, "started")
	_, _ = os.Stdin.Read(make([]byte, 1)) // until the test has taken its footprint
	return env.Stop()
}

// A suite is another process of this binary, like any go test.
type suite struct {
	cmd       *exec.Cmd
	input     io.WriteCloser
	lines     *bufio.Scanner
	mark      string
	temporary string
}

func startSuite(t *testing.T, role string) *suite {
	t.Helper()
	s := &suite{mark: markVariable + "=" + strconv.FormatUint(rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)).Uint64(), 36), temporary: t.TempDir()}
	s.cmd = exec.Command(os.Args[0], "-test.run=^$")
	s.cmd.Env = append(os.Environ(), roleVariable+"="+role, s.mark, "TMPDIR="+s.temporary)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if s.input, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.lines = bufio.NewScanner(out)
	t.Cleanup(func() { s.killAll(t) })
	return s
}

// killAll ends the processes that a failed test has left running.
func (s *suite) killAll(t *testing.T) {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	for _, p := range marked(s.mark) {
		if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Errorf("killing %s: %v", p, err)
		}
	}
}

// says waits until the suite prints the line.
func (s *suite) says(t *testing.T, want string) {
	t.Helper()
	for s.lines.Scan() {
		if s.lines.Text() == want {
			return
		}
	}
	t.Fatalf("the process has not said %q: %v", want, s.lines.Err())
}

func (s *suite) footprint() footprint { return look(marked(s.mark), s.temporary, "/dev/shm") }

func (s *suite) running() error {
	if left := marked(s.mark); len(left) > 0 {
		return fmt.Errorf("still running: %v", left)
	}
	return nil
}

// TestAServerThatHasJustBeenStartedEndsWithItsSuite kills suites up to 300 ms after a
// server was executed. Some suites are killed before the server can identify its parent,
// others while the server starts. The machine is kept busy, so that a server takes longer
// to start.
func TestAServerThatHasJustBeenStartedEndsWithItsSuite(t *testing.T) {
	oursOnly(t)
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	if given := os.Getenv("CONTRACT_KILLS"); given != "" {
		var err error
		if rounds, err = strconv.Atoi(given); err != nil {
			t.Fatalf("CONTRACT_KILLS: %v", err)
		}
	}
	keepBusy(t)
	random := rand.New(rand.NewPCG(seed(t), 0))
	for round := range rounds {
		program := []string{"etcd", "kube-apiserver"}[round%2]
		after := time.Duration(random.Int64N(int64(300 * time.Millisecond)))
		t.Run(fmt.Sprintf("round %d, %s, after %v", round+1, program, after), func(t *testing.T) {
			s := startSuite(t, watcher)
			s.says(t, "starting")
			s.executes(t, program)
			<-time.After(after)
			s.mustDieWithoutTrace(t)
		})
	}
}

// keepBusy runs two computing processes per processor until the test ends.
func keepBusy(t *testing.T) {
	t.Helper()
	for range 2 * runtime.NumCPU() {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), roleVariable+"="+busy)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = in.Close() // this ends the process
			_ = cmd.Wait()
		})
	}
}

// compute keeps a processor busy until the standard input ends.
func compute() error {
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	sum := sha256.Sum256(nil)
	for {
		sum = sha256.Sum256(sum[:])
	}
}

// executes waits until a process of the suite has executed the program. It waits as long as
// the suite waits for its servers.
func (s *suite) executes(t *testing.T, program string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, newEnvironment().ControlPlaneStartTimeout, true, func(context.Context) (bool, error) {
		_, found := s.server(program)
		return found, nil
	})
	if err != nil {
		t.Fatalf("the suite has not executed %s: %v", program, err)
	}
}

func TestNothingIsLeftOfASuiteThatWasKilled(t *testing.T) {
	oursOnly(t) // stock programs do not know that their parent has died
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	random := rand.New(rand.NewPCG(seed(t), 0))
	for round := range rounds {
		// The last rounds kill suites whose servers are running; the earlier rounds kill
		// suites whose servers are starting.
		after := time.Duration(random.Int64N(int64(time.Second)))
		ready := round >= rounds*3/4
		t.Run(fmt.Sprintf("round %d, ready %v, after %v", round+1, ready, after), func(t *testing.T) {
			s := startSuite(t, watcher)
			s.says(t, "starting")
			if ready {
				s.says(t, "watching")
			} else {
				<-time.After(after)
			}
			if owned := s.footprint(); ready && (len(owned.sockets) < 2 || len(owned.folders) == 0) {
				t.Errorf("a running suite owns %+v; two servers own more, so the test would prove nothing", owned)
			}
			s.mustDieWithoutTrace(t)
		})
	}
}

// TestNothingIsLeftOfASuiteThatWasKilledInStop kills suites whose servers are stopping or
// have stopped, and whose folders have not been removed yet.
func TestNothingIsLeftOfASuiteThatWasKilledInStop(t *testing.T) {
	oursOnly(t)
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	random := rand.New(rand.NewPCG(seed(t), 0))
	for round := range rounds {
		after := time.Duration(random.Int64N(int64(200 * time.Millisecond)))
		t.Run(fmt.Sprintf("round %d, after %v", round+1, after), func(t *testing.T) {
			s := startSuite(t, stopper)
			s.says(t, "started")
			owned := s.footprint()
			if len(owned.folders) < 2 {
				t.Errorf("the servers own %v; each server has a folder, so the test would prove nothing", owned.folders)
			}
			if err := s.input.Close(); err != nil {
				t.Fatal(err)
			}
			<-time.After(after)
			s.mustDieWithoutTrace(t, owned)
		})
	}
}

// mustDieWithoutTrace kills the suite, and waits until all resources that it owns or has
// owned are gone.
func (s *suite) mustDieWithoutTrace(t *testing.T, owned ...footprint) {
	t.Helper()
	owned = append(owned, s.footprint())
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // it was killed
	// A server that was executed just before the kill also has a folder. Folders that were
	// not yet passed to any server are envtest's own responsibility.
	owned = append(owned, s.footprint())
	eventually(t, "no trace of the killed suite", func(context.Context) error {
		errs := []error{s.running()}
		for _, f := range owned {
			errs = append(errs, f.left())
		}
		return errors.Join(errs...)
	})
}

// seed returns the seed for the times at which suites are killed. The seed is printed so
// that a run can be repeated.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if given := os.Getenv("CONTRACT_SEED"); given != "" {
		var err error
		if s, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("CONTRACT_SEED: %v", err)
		}
	}
	t.Logf("CONTRACT_SEED=%d repeats the kills at the same times", s)
	return s
}

func TestSIGTERMEndsAProcessGroup(t *testing.T) {
	for _, program := range []string{"kube-apiserver", "etcd"} {
		t.Run(program, func(t *testing.T) {
			if program == "kube-apiserver" {
				oursOnly(t) // stock waits a minute for the watch
			}
			s := startSuite(t, watcher)
			s.says(t, "watching")
			p := s.find(t, program)
			if group, err := syscall.Getpgid(p.pid); err != nil || group != p.pid {
				t.Fatalf("%s is in process group %d: %v; envtest makes it the leader of one", p, group, err)
			}
			if err := syscall.Kill(-p.pid, syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the process's end", func(context.Context) error { return s.ended(p.pid) })
		})
	}
}

// find returns the process of one of the suite's servers.
func (s *suite) find(t *testing.T, program string) process {
	t.Helper()
	p, found := s.server(program)
	if !found {
		t.Fatalf("no %s among %v", program, marked(s.mark))
	}
	return p
}

// server finds the server by a flag that only it has on its command line. Unlike a host,
// the server is the leader of a process group.
func (s *suite) server(program string) (process, bool) {
	flag := map[string]string{"etcd": "--data-dir=", "kube-apiserver": "--cert-dir="}[program]
	for _, p := range marked(s.mark) {
		group, err := syscall.Getpgid(p.pid)
		if err == nil && group == p.pid && slices.ContainsFunc(p.args, func(a string) bool { return strings.HasPrefix(a, flag) }) {
			return p, true
		}
	}
	return process{}, false
}

// ended returns an error while any process is in the group.
func (s *suite) ended(group int) error {
	for _, p := range marked(s.mark) {
		if of, err := syscall.Getpgid(p.pid); err == nil && of == group {
			return fmt.Errorf("still running: %s", p)
		}
	}
	return nil
}
