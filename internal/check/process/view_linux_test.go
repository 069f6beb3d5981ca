package process_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/process"
	"github.com/koboshi-dev/koboshi/internal/check/process/view"
)

// account is a folder that hardly any machine has; only Pods have it.
const account = "/var/run/secrets/kubernetes.io/serviceaccount"

// makeView makes a view in which account holds a token, and in which the other folder is
// hidden.
func makeView(dir, hidden string) (*view.View, error) {
	for _, folder := range []string{"staging", "account", "empty"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "account", "token"), []byte("first"), 0o600); err != nil {
		return nil, err
	}
	return view.New(filepath.Join(dir, "staging"), []view.Mount{
		{Source: filepath.Join(dir, "account"), Target: account},
		{Source: filepath.Join(dir, "empty"), Target: hidden},
	})
}

func viewOf(t *testing.T, dir, hidden string) *view.View {
	t.Helper()
	v, err := makeView(dir, hidden)
	if errors.Is(err, syscall.EPERM) {
		t.Skipf("this system cannot make views: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.Close() })
	return v
}

func TestProcessesSeeTheirView(t *testing.T) {
	dir, hidden := t.TempDir(), t.TempDir()
	writeFile(t, filepath.Join(hidden, "credentials"), "secret")
	v := viewOf(t, dir, hidden)
	s := shell(`cat ` + account + `/token; ls ` + hidden + `; touch ` + hidden + `/new 2>/dev/null && echo written; ls /run; pwd`)
	s.View, s.Dir = v, dir
	_, output := start(t, s).Exit()
	want := "first"
	entries, err := os.ReadDir("/run")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.Contains(output, e.Name()+"\n") {
			t.Errorf("/run/%s is missing in the view", e.Name())
		}
	}
	if !strings.HasPrefix(output, want) || !strings.HasSuffix(output, "\n"+dir+"\n") || strings.Contains(output, "credentials") || strings.Contains(output, "written") {
		t.Errorf("it printed:\n%s", output)
	}
	// A later process sees what was written to the source in the meantime.
	writeFile(t, filepath.Join(dir, "account", "token"), "second")
	s = shell(`cat ` + account + `/token; pwd`)
	s.View = v
	here, _ := os.Getwd()
	if _, output := start(t, s).Exit(); output != "second"+here+"\n" {
		t.Errorf("the second process printed:\n%s", output)
	}
	if _, err := os.Stat(account); !errors.Is(err, os.ErrNotExist) && os.Getenv("KUBERNETES_SERVICE_HOST") == "" {
		t.Errorf("%s exists outside of the view: %v", account, err)
	}
	if entries, _ := os.ReadDir(hidden); len(entries) != 1 {
		t.Errorf("outside of the view, the hidden folder contains %v", entries)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestUsersOtherThanRootMakeViews starts the test program three times: as another user, in
// that user's own user namespace, and as a process in a view.
func TestUsersOtherThanRootMakeViews(t *testing.T) {
	dir, err := os.MkdirTemp("", "process-view-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "program")
	data, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(program, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	if os.Geteuid() == 0 {
		const nobody = 65534
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if err := os.Chown(dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	cmd.Dir, cmd.Env = dir, append(os.Environ(), roleName+"=user "+dir)
	out, err := cmd.CombinedOutput()
	if strings.Contains(string(out), "forbidden") {
		t.Skip("this system forbids user namespaces")
	}
	if err != nil || !strings.Contains(string(out), "first\nCapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// asUser starts this program again, so that it can make views.
func asUser(dir string) {
	cmd := exec.Command(os.Args[0])
	cmd.SysProcAttr = view.Attributes()
	if cmd.SysProcAttr == nil {
		_, _ = fmt.Fprintln(os.Stdout, "forbidden")
		return
	}
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), roleName+"=view "+dir), os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		panic(err)
	}
}

// inView prints what a process in a view sees, with an address of its own as in a check.
func inView(dir string) {
	view.KeepFromChildren()
	v, err := makeView(dir, dir)
	if errors.Is(err, syscall.EPERM) {
		_, _ = fmt.Fprintln(os.Stdout, "forbidden")
		return
	} else if err != nil {
		panic(err)
	}
	p, err := process.Start(context.Background(), process.Spec{
		Command: []string{"sh", "-c", "cat " + account + "/token; echo; grep -E 'CapPrm|CapEff' /proc/self/status"}, Dir: "/",
		View: v, Address: netip.MustParseAddr("127.201.3.8"),
	})
	if err != nil {
		panic(err)
	}
	_, output := p.Exit()
	_, _ = fmt.Fprint(os.Stdout, output)
}

// BenchmarkStartInView measures the same as BenchmarkStart, in a view.
func BenchmarkStartInView(b *testing.B) {
	v, err := makeView(b.TempDir(), b.TempDir())
	if err != nil {
		b.Skip(err)
	}
	for b.Loop() {
		p, err := process.Start(b.Context(), process.Spec{Command: []string{"/bin/sleep", "1000"}, View: v, Address: netip.MustParseAddr("127.201.3.9")})
		if err != nil {
			b.Fatal(err)
		}
		p.Kill()
	}
}

// BenchmarkNewView measures how long it takes to make a view, which a lab does once for each
// instance.
func BenchmarkNewView(b *testing.B) {
	hidden := b.TempDir()
	for b.Loop() {
		v, err := makeView(b.TempDir(), hidden)
		if err != nil {
			b.Skip(err)
		}
		_ = v.Close()
	}
}

func TestViewAddsFoldersToTheRootFolderWithoutChangingTheDisk(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{"staging", "data", "config"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(dir, "config", "a"), "one ")
	v, err := view.New(filepath.Join(dir, "staging"), []view.Mount{
		{Source: filepath.Join(dir, "data"), Target: "/koboshi-test/data", Writable: true},
		{Source: filepath.Join(dir, "config"), Target: "/etc/koboshi-test"},
	})
	if errors.Is(err, syscall.EPERM) {
		t.Skipf("this system cannot make views: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = v.Close() }()
	s := shell(`cat /etc/koboshi-test/a; echo x 2>/dev/null >/etc/koboshi-test/b || printf 'two '; echo three >/koboshi-test/data/c; cat /koboshi-test/data/c /etc/hostname >/dev/null && ls /; pwd`)
	s.View, s.Dir = v, dir
	_, output := start(t, s).Exit()
	if !strings.HasPrefix(output, "one two ") || !strings.Contains(output, "koboshi-test\n") || !strings.HasSuffix(output, "\n"+dir+"\n") {
		t.Errorf("it printed:\n%s", output)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "data", "c")); err != nil || string(data) != "three\n" {
		t.Errorf("the source has %q, %v", data, err)
	}
	for _, path := range []string{"/koboshi-test", "/etc/koboshi-test"} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is on disk: %v", path, err)
		}
	}
}
