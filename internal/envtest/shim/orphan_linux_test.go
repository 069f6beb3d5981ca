package shim

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A test starts this binary in the role of a suite or of a server. The suite locks its
// reservation, if it has one, starts a server and waits to be killed. The server waits for
// a line, which the test sends when the suite is dead, and only then reads its parent's
// process ID.
const (
	roleVariable        = "SHIM_TEST_ROLE"
	reservationVariable = "SHIM_TEST_RESERVATION"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "suite":
		beSuite()
	case "server":
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		parent = os.Getppid()
		select {
		case <-orphaned(Etcd, os.Args[1:]):
			_, _ = fmt.Fprintln(os.Stdout, "ends")
		default:
			_, _ = fmt.Fprintln(os.Stdout, "stays")
		}
	default:
		os.Exit(m.Run())
	}
}

func beSuite() {
	if path := os.Getenv(reservationVariable); path != "" {
		fd, err := syscall.Open(path, syscall.O_CREAT|syscall.O_RDWR|syscall.O_CLOEXEC, 0o600)
		if err == nil {
			err = syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
		}
		if err != nil {
			_, _ = fmt.Fprintln(os.Stdout, err)
			return
		}
	}
	server := exec.Command(os.Args[0], os.Args[1:]...)
	server.Env = append(os.Environ(), roleVariable+"=server")
	server.Stdin, server.Stdout = os.Stdin, os.Stdout
	server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as envtest does
	if err := server.Start(); err != nil {
		_, _ = fmt.Fprintln(os.Stdout, err)
		return
	}
	_, _ = fmt.Fprintln(os.Stdout, "started")
	select {}
}

// afterTheSuite returns the reaction of a server that looks for its suite only after the
// suite has died.
func afterTheSuite(t *testing.T, reservation string, args []string, env ...string) string {
	t.Helper()
	in, input, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	output, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	suite := exec.Command(os.Args[0], args...)
	suite.Env = append(append(os.Environ(), roleVariable+"=suite", reservationVariable+"="+reservation), env...)
	suite.Stdin, suite.Stdout = in, out
	// The suite gets its own session, so that the process that adopts the server is in
	// another session.
	suite.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := suite.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = in.Close(), out.Close()
	lines := bufio.NewScanner(output)
	if !lines.Scan() || lines.Text() != "started" {
		t.Fatalf("the suite printed %q", lines.Text())
	}
	_ = suite.Process.Kill()
	_ = suite.Wait() // it was killed
	if _, err := input.WriteString("look\n"); err != nil {
		t.Fatal(err)
	}
	lines.Scan()
	return lines.Text()
}

func TestAServerEndsThoughItLooksOnlyWhenItsSuiteIsDead(t *testing.T) {
	const port = "43210"
	home := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", home)
	if err := os.Mkdir(filepath.Join(home, "kubebuilder-envtest"), 0o700); err != nil {
		t.Fatal(err)
	}
	reserved := filepath.Join(home, "kubebuilder-envtest", "port-"+port)
	const ofEnvtest, ofAPerson = "--data-dir=/nowhere/k8s_test_framework_1", "--data-dir=/nowhere/mine"
	for _, test := range []struct {
		reservation, folder string
		env                 []string
		want                string
	}{
		{reserved, ofEnvtest, nil, "ends"},
		{reserved, ofAPerson, nil, "ends"}, // Etcd.DataDir is set
		{"", ofEnvtest, nil, "ends"},       // Etcd.URL is set
		{reserved, ofEnvtest, []string{KeepVariable + "=1"}, "stays"},
	} {
		args := []string{"--listen-client-urls=http://127.0.0.1:" + port, test.folder}
		if got := afterTheSuite(t, test.reservation, args, test.env...); got != test.want {
			t.Errorf("reservation %q, %s, environment %v: the server %s, want that it %s", test.reservation, test.folder, test.env, got, test.want)
		}
		_ = os.Remove(reserved)
	}
}

func TestAServerOfAPersonsStaysWhereItWasStartedToStay(t *testing.T) {
	for name, command := range map[string]string{
		"nohup":  "trap '' HUP; exec %s",
		"setsid": "exec setsid %s",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath("setsid"); name == "setsid" && err != nil {
				t.Skip("there is no setsid")
			}
			server := exec.Command("sh", "-c", fmt.Sprintf(command, "'"+os.Args[0]+"' --data-dir=/nowhere/mine"))
			server.Env = append(os.Environ(), roleVariable+"=server")
			server.Stdin = strings.NewReader("look\n")
			if out, err := server.Output(); err != nil || string(out) != "stays\n" {
				t.Errorf("the server printed %q, want that it stays: %v", out, err)
			}
		})
	}
}
