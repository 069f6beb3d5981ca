package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// executable creates a program in a folder of its own.
func executable(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestProgramsOfFlagsAndSettingsRunInPodsAndInAReplay(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("programs need Linux")
	}
	web, db, other := executable(t, "web"), executable(t, "db"), executable(t, "other")
	settings := "check:\n  run:\n  - docker.io/library/web=" + other + "\n  - db=" + db + "\n"
	f, o, err := configured(t, settings, "--run=web="+web)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Programs) != 2 || o.Programs[0].Path != web || o.Programs[1].Path != db {
		t.Errorf("the programs are %+v", o.Programs)
	}
	for _, want := range []string{"--run=web=" + web, "--run=db=" + db, "--profile=workloads"} {
		if !slices.Contains(f.subject(), want) {
			t.Errorf("a replay would not use %s: %q", want, f.subject())
		}
	}
	if o.Profile != "workloads" || o.Kubernetes != "" {
		t.Errorf("profile %s", o.Profile)
	}
	lines := strings.Join(programLines([]string{"web=" + web, "web=/no/such/file"}), "\n")
	for _, want := range []string{web, "for Pods with the image web", "/no/such/file"} {
		if !strings.Contains(lines, want) {
			t.Errorf("a replay asks %q", lines)
		}
	}
}

func TestProgramsThatACheckCannotRunAreRefused(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("programs need Linux")
	}
	web := executable(t, "web")
	for want, args := range map[string][]string{
		"--run: \"web\" is not of the form IMAGE=PATH":        {"--run=web"},
		"--run: image web: /no/such/file does not exist":      {"--run=web=/no/such/file"},
		"--run: image web has two programs":                   {"--run=web=" + web, "--run=web=" + web},
		"programs in Pods need a scheduler, but profile gc":   {"--run=web=" + web, "--profile=gc"},
		"check.run: image db: /no/such/file does not exist; ": nil,
	} {
		settings := ""
		if args == nil {
			settings = "check: {run: [db=/no/such/file]}\n"
		}
		if _, _, err := configured(t, settings, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
