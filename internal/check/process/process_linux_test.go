package process_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/process"
)

func listener(t *testing.T, address string, own string) (*process.Process, *lines) {
	t.Helper()
	out := newLines()
	p := start(t, process.Spec{
		Command: []string{os.Args[0]}, Env: []string{roleName + "=listen " + address},
		Address: netip.MustParseAddr(own), Output: out,
	})
	if !p.Address().IsValid() {
		t.Skip("this system cannot give a process a separate address")
	}
	return p, out
}

func TestInstancesListenOnOnePortSideBySide(t *testing.T) {
	for _, host := range []string{"0.0.0.0", "[::]", ""} {
		t.Run("host "+host, func(t *testing.T) {
			// The second instance can get the port only if it has a separate address.
			first, out := listener(t, host+":0", "127.201.3.1")
			_, port, err := net.SplitHostPort(out.await(t, first, "listening on "))
			if err != nil {
				t.Fatal(err)
			}
			second, out := listener(t, host+":"+port, "127.201.3.2")
			out.await(t, second, "listening on ")
			for p, address := range map[*process.Process]string{first: "127.201.3.1", second: "127.201.3.2"} {
				if got := dial(t, net.JoinHostPort(address, port)); got != strconv.Itoa(p.PID()) {
					t.Errorf("at %s, process %s answers instead of %d", address, got, p.PID())
				}
			}
		})
	}
}

func TestAfterAKillThePortIsFreeAgain(t *testing.T) {
	first, out := listener(t, ":0", "127.201.3.3")
	_, port, _ := net.SplitHostPort(out.await(t, first, "listening on "))
	for range 3 {
		first.Kill()
		first, out = listener(t, ":"+port, "127.201.3.3")
		out.await(t, first, "listening on ")
	}
}

func TestThisProcessKeepsItsOwnAddresses(t *testing.T) {
	p, out := listener(t, ":0", "127.201.3.4")
	out.await(t, p, "listening on ")
	for range 8 {
		l, err := net.Listen("tcp4", ":0")
		if err != nil {
			t.Fatal(err)
		}
		if !l.Addr().(*net.TCPAddr).IP.IsUnspecified() {
			t.Errorf("a listener of the test got %s", l.Addr())
		}
		_ = l.Close()
	}
}

// A process in a Pod of a plane has a filter of that plane, and cannot install another one.
func TestProcessesOfAProcessWithAnAddressHaveTheirOwnAddresses(t *testing.T) {
	outer, out := listener(t, ":0", "127.201.3.5")
	_, port, _ := net.SplitHostPort(out.await(t, outer, "listening on "))
	out = newLines()
	nesting := start(t, process.Spec{
		Command: []string{os.Args[0]}, Env: []string{roleName + "=nest :" + port},
		Address: netip.MustParseAddr("127.201.3.5"), Output: out,
	})
	for _, address := range []string{"127.201.3.6", "127.201.3.7"} {
		pid := out.await(t, nesting, address+" is for ")
		out.await(t, nesting, "listening on "+net.JoinHostPort(address, port))
		if got := dial(t, net.JoinHostPort(address, port)); got != pid {
			t.Errorf("at %s, process %s answers instead of %s", address, got, pid)
		}
	}
}

// nest starts two processes that listen on the same port, and ends when it is killed.
func nest(port string) {
	for _, address := range []string{"127.201.3.6", "127.201.3.7"} {
		p, err := process.Start(context.Background(), process.Spec{
			Command: []string{os.Args[0]}, Env: []string{roleName + "=listen " + port},
			Address: netip.MustParseAddr(address), Output: os.Stdout,
		})
		if err != nil || !p.Address().IsValid() {
			_, _ = fmt.Fprintln(os.Stdout, "the process has no address of its own:", err)
			os.Exit(3)
		}
		_, _ = fmt.Fprintln(os.Stdout, address, "is for", p.PID())
	}
	select {}
}

func dial(t *testing.T, address string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer func() { _ = conn.Close() }()
	greeting, err := io.ReadAll(conn)
	if err != nil {
		t.Error(err)
	}
	return string(greeting)
}

func TestNoGrandchildOutlivesIt(t *testing.T) {
	for _, c := range []struct {
		name, start string
		ends        bool // the child exits instead of being killed
	}{
		{name: "in the group", start: "sleep $TIME &"},
		{name: "that left the group", start: "setsid sleep $TIME &"},
		{name: "that left the group and its parent", start: "(setsid sleep $TIME &) &"},
		{name: "that dropped the environment", start: "setsid env -i sleep $TIME &"},
		{name: "in the group, after it exited", start: "sleep $TIME &", ends: true},
		{name: "that left the group, after it exited", start: "setsid sleep $TIME &", ends: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The argument identifies the grandchild even if its environment and parents
			// are gone.
			seconds := strconv.Itoa(100000+os.Getpid()) + "." + strconv.Itoa(len(c.name))
			end := filepath.Join(t.TempDir(), "end")
			s := shell(c.start + " until [ -e $END ]; do sleep 0.01; done; exit 3")
			s.Env = []string{"TIME=" + seconds, "END=" + end}
			p := start(t, s)
			for len(running("sleep\x00"+seconds)) == 0 {
				if t.Context().Err() != nil {
					t.Fatal("there is no grandchild")
				}
				<-time.After(time.Millisecond)
			}
			if c.ends {
				if err := os.WriteFile(end, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				<-p.Exited()
			} else {
				p.Kill()
			}
			for _, pid := range running("sleep\x00" + seconds) {
				t.Errorf("process %d is still running", pid)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
}

// running returns the processes with the given command line.
func running(commandLine string) []int {
	var found []int
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if strings.HasPrefix(string(line), commandLine) {
			found = append(found, pid)
		}
	}
	return found
}

func TestItDiesWithUs(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleName+"=parent exec sleep 1000")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 64)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(string(line[:n]), "child ")))
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	for syscall.Kill(pid, 0) == nil && !zombie(pid) {
		if t.Context().Err() != nil {
			t.Fatal("the child outlives its parent")
		}
		<-time.After(time.Millisecond)
	}
}

func zombie(pid int) bool {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	return errors.Is(err, os.ErrNotExist) || strings.Contains(string(status), "\nState:\tZ")
}

// BenchmarkStart measures the time to start a process with an address and to kill it.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		p, err := process.Start(b.Context(), process.Spec{Command: []string{"/bin/sleep", "1000"}, Address: netip.MustParseAddr("127.201.3.9")})
		if err != nil {
			b.Fatal(err)
		}
		p.Kill()
	}
}
