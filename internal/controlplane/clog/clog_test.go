package clog

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
)

func TestOpenKeepsTheLogOfTheRunBefore(t *testing.T) {
	t.Parallel()
	dir := Dir(filepath.Join(t.TempDir(), "logs"))
	for _, line := range []string{"first", "second", "third"} {
		f, err := dir.Open("etcd")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(line); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{dir.Path("etcd"): "third", dir.Path("etcd") + ".1": "second"} {
		data, err := os.ReadFile(path)
		if err != nil || string(data) != want {
			t.Errorf("%s holds %q (%v), want %q", path, data, err, want)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", path, info.Mode().Perm())
		}
	}
}

func TestEachLoggerWritesToItsFile(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*bytes.Buffer){
		"klog": func(b *bytes.Buffer) {
			l := Klog(b, 2)
			l.V(2).Info("said")
			l.V(3).Info("hidden")
		},
		"slog": func(b *bytes.Buffer) {
			Slog(b).Info("said")
			Slog(b).Debug("hidden")
		},
		"zap": func(b *bytes.Buffer) {
			Zap(b).Info("said")
			Zap(b).Debug("hidden", zap.Bool("x", true))
		},
	} {
		var b bytes.Buffer
		write(&b)
		if got := b.String(); !strings.Contains(got, "said") || strings.Contains(got, "hidden") || strings.Count(got, "\n") != 1 {
			t.Errorf("%s wrote %q, want one line that says said", name, got)
		}
	}
}

// This test runs in its own process, because it redirects standard error.
func TestMovedStderrGoesToTheLogAndACrashToBoth(t *testing.T) {
	const name = "KOBOSHI_TEST_LOG"
	if log := os.Getenv(name); log != "" {
		crash(log)
	}
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "stderr.log")
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), name+"="+log)
	var terminal bytes.Buffer
	cmd.Stderr = &terminal
	if cmd.Run() == nil {
		t.Error("the process did not crash")
	}
	logged, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		line              string
		logged, displayed bool
	}{
		{"before", false, true},
		{"to the log", true, false},
		{"to the person", false, true},
		{"panic: fell over", true, true},
	} {
		if got := strings.Contains(string(logged), test.line); got != test.logged {
			t.Errorf("%q in the log: %t, want %t", test.line, got, test.logged)
		}
		if got := strings.Contains(terminal.String(), test.line); got != test.displayed {
			t.Errorf("%q on the terminal: %t, want %t", test.line, got, test.displayed)
		}
	}
}

func crash(path string) {
	say := func(f *os.File, line string) {
		if _, err := f.WriteString(line + "\n"); err != nil {
			panic(err)
		}
	}
	say(os.Stderr, "before")
	kept, err := KeepStderr()
	if err != nil {
		panic(err)
	}
	log, err := os.Create(path)
	if err != nil {
		panic(err)
	}
	if err := MoveStderr(log, kept); err != nil {
		panic(err)
	}
	say(os.Stderr, "to the log")
	say(kept, "to the person")
	go panic("fell over") // not in the test's goroutine, where testing would catch the panic
	select {}
}
