package contract

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	watcher      = "watcher"
	markVariable = "CONTRACT_MARK"
)

// watchForever plays a suite: it starts an environment and holds a watch
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

// A suite is this binary in another process, like any go test.
type suite struct {
	cmd       *exec.Cmd
	lines     *bufio.Scanner
	mark      string
	temporary string
}

func startSuite(t *testing.T) *suite {
	t.Helper()
	s := &suite{mark: markVariable + "=" + strconv.FormatUint(rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)).Uint64(), 36), temporary: t.TempDir()}
	s.cmd = exec.Command(os.Args[0], "-test.run=^$")
	s.cmd.Env = append(os.Environ(), roleVariable+"="+watcher, s.mark, "TMPDIR="+s.temporary)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
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

// says waits until the suite writes the line.
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

func TestNothingIsLeftOfASuiteThatWasKilled(t *testing.T) {
	oursOnly(t) // stock programs do not know that their parent has died
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	random := rand.New(rand.NewPCG(seed(t), 0))
	for round := range rounds {
		// The last rounds kill running servers, the others starting ones.
		after := time.Duration(random.Int64N(int64(time.Second)))
		ready := round >= rounds*3/4
		t.Run(fmt.Sprintf("round %d, ready %v, after %v", round+1, ready, after), func(t *testing.T) {
			s := startSuite(t)
			s.says(t, "starting")
			if ready {
				s.says(t, "watching")
			} else {
				<-time.After(after)
			}
			if owned := s.footprint(); ready && (len(owned.sockets) < 2 || len(owned.folders) == 0) {
				t.Errorf("a running suite owns %+v; two servers own more, so this would show nothing", owned)
			}
			s.mustDieWithoutTrace(t)
		})
	}
}

func (s *suite) mustDieWithoutTrace(t *testing.T) {
	t.Helper()
	before := s.footprint()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait() // reports that it was killed
	// Folders that no program has been told of yet belong to envtest.
	eventually(t, "no trace of the killed suite", func(context.Context) error {
		return errors.Join(s.running(), before.left())
	})
}

// seed returns the seed of the moments. It is printed so that a run can be repeated.
func seed(t *testing.T) uint64 {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if given := os.Getenv("CONTRACT_SEED"); given != "" {
		var err error
		if s, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("CONTRACT_SEED: %v", err)
		}
	}
	t.Logf("CONTRACT_SEED=%d repeats these moments", s)
	return s
}

func TestSIGTERMEndsAProcessGroup(t *testing.T) {
	for _, program := range []string{"kube-apiserver", "etcd"} {
		t.Run(program, func(t *testing.T) {
			if program == "kube-apiserver" {
				oursOnly(t) // stock waits a minute for the watch
			}
			s := startSuite(t)
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

// find finds the server among the suite's processes, by a flag that only its command
// line has.
func (s *suite) find(t *testing.T, program string) process {
	t.Helper()
	flag := map[string]string{"etcd": "--data-dir=", "kube-apiserver": "--cert-dir="}[program]
	all := marked(s.mark)
	for _, p := range all {
		leads := func() bool { group, err := syscall.Getpgid(p.pid); return err == nil && group == p.pid }
		if leads() && slices.ContainsFunc(p.args, func(a string) bool { return strings.HasPrefix(a, flag) }) {
			return p
		}
	}
	t.Fatalf("no %s among %v", program, all)
	return process{}
}

// ended returns an error while a process is left in the group.
func (s *suite) ended(group int) error {
	for _, p := range marked(s.mark) {
		if of, err := syscall.Getpgid(p.pid); err == nil && of == group {
			return fmt.Errorf("still running: %s", p)
		}
	}
	return nil
}
