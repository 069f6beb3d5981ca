package freeport

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

const suiteVariable = "FREEPORT_TEST_SUITE"

// TestMain lets a test start this binary as a suite, which locks a reservation and lives
// until its input ends.
func TestMain(m *testing.M) {
	path := os.Getenv(suiteVariable)
	if path == "" {
		os.Exit(m.Run())
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil || lock(file, exclusive) != locked {
		os.Exit(1)
	}
	_, _ = os.Stdout.WriteString("reserved\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
	os.Exit(0)
}

// reserved starts a process that reserves the port, and returns a function that ends it.
func reserved(t *testing.T, port int) (end func()) {
	t.Helper()
	path := filepath.Join(cache(t), name(port))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), suiteVariable+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the suite said %q: %v", line, err)
	}
	end = func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	t.Cleanup(end)
	return end
}

// cache returns a folder for reservations that only this test uses.
func cache(t *testing.T) string {
	t.Helper()
	if folders()[0] == os.Getenv("FREEPORT_TEST_FOLDER") {
		return folders()[0]
	}
	home := t.TempDir()
	for _, variable := range []string{"HOME", "XDG_CACHE_HOME", "TMPDIR"} {
		t.Setenv(variable, home)
	}
	folder := folders()[0]
	t.Setenv("FREEPORT_TEST_FOLDER", folder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

func TestAPortThatASuiteHasReservedIsNotTaken(t *testing.T) {
	folder := cache(t)
	l, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	free := port(l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	end := reserved(t, free)
	if _, ok := reserve(free); ok {
		t.Error("a port that is reserved was taken")
	}
	end()
	release, ok := reserve(free)
	if !ok {
		t.Fatal("a port whose suite has ended was not taken")
	}
	release()
	if left, _ := os.ReadDir(folder); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

func TestAnOpenPortIsReservedUntilItIsClosed(t *testing.T) {
	folder := cache(t)
	l, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(folder, name(port(l))), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got := lock(file, exclusive); got != held {
		t.Errorf("a suite's attempt to lock it ended with %d, want %d", got, held)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(folder); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}

func TestWithoutAnySuiteNothingIsWritten(t *testing.T) {
	folder := cache(t)
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	l, err := Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder of reservations exists: %v", err)
	}
}

func TestAReservationEndsWithItsProcess(t *testing.T) {
	cache(t)
	if Find(1) != nil {
		t.Fatal("a reservation was found and none was made")
	}
	end := reserved(t, 1)
	r := Find(1)
	if r == nil || !r.Held() {
		t.Fatalf("the reservation of a living process: %v", r)
	}
	ended := make(chan struct{})
	go func() {
		r.AwaitEnd()
		close(ended)
	}()
	end()
	<-ended
	if r.Held() {
		t.Error("it is held after its process has ended")
	}
}

func TestAnOldReservationOfNobodySaysNothing(t *testing.T) {
	path := filepath.Join(cache(t), name(2))
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := Find(2); r == nil || r.Held() {
		t.Errorf("a new reservation whose process has ended: %v", r)
	}
	old := time.Now().Add(-validity - time.Second)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	if r := Find(2); r != nil {
		t.Errorf("%s is taken for a reservation of port %s", path, strconv.Itoa(2))
	}
}
