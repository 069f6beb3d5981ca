package family

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestARowOfProcIsRead(t *testing.T) {
	for _, c := range []struct {
		line string
		want Process
	}{
		{
			"42 (kube-apiserver) S 1 40 39 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 9 0 777 1 2 3",
			Process{PID: 42, Parent: 1, Group: 40, Session: 39, State: 'S'},
		},
		{
			"7 (a) Z (b) R 1 2 3) S 5 6 4 0 -1 0 1 0 0 0 1 2 0 0 20 0 9 0 777 1 2 3",
			Process{PID: 7, Parent: 5, Group: 6, Session: 4, State: 'S'},
		},
	} {
		got, err := parseStat(c.line)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", c.line, diff)
		}
	}
	for _, line := range []string{"", "42", "42 (x", "x (y) S 1 1 1 0", "42 (x) S 1"} {
		if got, err := parseStat(line); err == nil {
			t.Errorf("%q is read as %+v", line, got)
		}
	}
}

func TestAFamilyHoldsWhoeverGotAwayAndNobodyElse(t *testing.T) {
	const root = 100
	all := []Process{
		{PID: 1},
		{PID: 50, Parent: 1, Group: 50, Session: 50},                  // the shell
		{PID: 99, Parent: 50, Group: 99, Session: 50},                 // another program of the shell
		{PID: 101, Parent: 1, Group: 101, Session: root},              // its parent ended
		{PID: 102, Parent: 103, Group: 103, Session: 103},             // listed before its parent
		{PID: 103, Parent: 101, Group: 103, Session: 103},             // a session of its own
		{PID: 104, Parent: 1, Group: 103, Session: 999},               // belongs by its group only
		{PID: 105, Parent: 1, Group: 105, Session: 105},               // wholly detached, and not marked
		{PID: 106, Parent: 1, Group: 106, Session: 106, Marked: true}, // wholly detached
		{PID: 107, Parent: 106, Group: 107, Session: 107},
		{PID: root, Parent: 99, Group: root, Session: root},
	}
	var got []int
	for _, p := range (Family{Root: root}).in(all) {
		got = append(got, p.PID)
	}
	if diff := cmp.Diff([]int{101, 102, 103, 104, 106, 107, root}, got); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutARootOnlyTheMarkTells(t *testing.T) {
	all := []Process{{PID: 1}, {PID: 2, Parent: 0, Group: 0, Session: 0}, {PID: 9, Parent: 1, Marked: true}}
	got := (Family{}).in(all)
	if len(got) != 1 || got[0].PID != 9 {
		t.Errorf("got %+v; kernel threads have the parent 0 and must not count", got)
	}
}

func TestAMarkIsAWholeEntry(t *testing.T) {
	environ := []byte("A=1\x00RUN=77\x00B=2\x00")
	for mark, want := range map[string]bool{"RUN=77": true, "RUN=7": false, "UN=77": false, "": false, "C=3": false} {
		if got := marked(environ, mark); got != want {
			t.Errorf("%q: %v, want %v", mark, got, want)
		}
	}
}

const role = "FAMILY_TEST_ROLE"

// TestMain lets the test binary act as the processes that the tests look for.
func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "parent": // starts a child in a session of its own, and ends
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), role+"=deaf")
		child.Stdout = os.Stdout
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			panic(err)
		}
	case "deaf": // ignores SIGTERM, and reports when it is ready to do so
		signal.Ignore(syscall.SIGTERM)
		fmt.Println(os.Getpid())
		time.Sleep(time.Minute)
	}
}

func TestADetachedGrandchildIsFoundAndEnded(t *testing.T) {
	f := Family{Mark: "FAMILY_TEST=" + rand.Text()}
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), role+"=parent", f.Mark)
	parent.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	f.Root = parent.Process.Pid
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	grandchild, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Wait(); err != nil {
		t.Fatal(err)
	}
	members, err := f.Members()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(members, func(p Process) bool { return p.PID == grandchild }) || len(members) != 1 {
		t.Fatalf("found %+v, want only the grandchild %d", members, grandchild)
	}
	n, err := f.End(50 * time.Millisecond)
	if n != 1 || err != nil {
		t.Errorf("End: %d, %v", n, err)
	}
	if left, err := f.Members(); err != nil || len(left) > 0 {
		t.Errorf("after End there are %+v, %v", left, err)
	}
}
