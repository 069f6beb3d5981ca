package process

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCPUTimeIsUserAndSystemWhateverTheName(t *testing.T) {
	got, err := parseCPU("42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 13 14")
	if err != nil || got != 2*time.Second {
		t.Errorf("%v, %v; want 2s", got, err)
	}
	if _, err := parseCPU("42 (a) S 1"); err == nil {
		t.Error("a truncated line was accepted")
	}
}

func TestMemoryIsInBytes(t *testing.T) {
	got, err := parseKilobytes("Rss:    12 kB\nPss:     8 kB\n", "Pss:")
	if err != nil || got != 8<<10 {
		t.Errorf("%v, %v; want 8192", got, err)
	}
	if _, err := parseKilobytes("Rss: 12 kB\n", "Pss:"); err == nil {
		t.Error("a missing field was accepted")
	}
}

func TestCostOfARunningProcessIsRead(t *testing.T) {
	p, err := Start(t.TempDir(), "busy", "/bin/sh", "-c", "while :; do :; done")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(0)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		cpu, err := p.CPU()
		if err != nil {
			t.Fatal(err)
		}
		if cpu > 0 {
			m, err := p.Memory()
			if err != nil || m.Resident <= 0 || m.Proportional <= 0 || m.Anonymous <= 0 || m.Peak < m.Resident {
				t.Errorf("%+v, %v", m, err)
			}
			return
		}
	}
	t.Error("the loop has used no CPU time")
}

func TestEarlyEndIsReportedWithTheOutput(t *testing.T) {
	dir := t.TempDir()
	p, err := Start(dir, "short", "/bin/sh", "-c", "echo no such flag; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	err = p.AwaitFile(t.Context(), filepath.Join(dir, "never"))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such flag") {
		t.Errorf("%v", err)
	}
}

func TestReadyFileEndsTheWait(t *testing.T) {
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	p, err := Start(dir, "ready", "/bin/sh", "-c", "echo up > "+ready+"; exec sleep 60")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop(0)
	if err := p.AwaitFile(t.Context(), ready); err != nil {
		t.Error(err)
	}
}

func TestStopKillsWhatDoesNotEnd(t *testing.T) {
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	p, err := Start(dir, "stubborn", "/bin/sh", "-c", "trap '' TERM; echo up > "+ready+"; while :; do sleep 1; done")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.AwaitFile(t.Context(), ready); err != nil {
		t.Fatal(err)
	}
	p.Stop(10 * time.Millisecond)
	if _, err := os.Stat(p.path("stat")); err == nil {
		t.Error("the program is still running")
	}
}
