package cri

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestLogIsInTheFormatOfCRI(t *testing.T) {
	b := newPlane(t).pod().start(containerConfig("print", "one\ntwo", ";", "complain", "three\n", ";", "print", " parts"))
	b.exited()
	format := regexp.MustCompile(`^(\S+) (stdout|stderr) ([PF]) (.*)\n$`)
	var stdout []string
	for line := range strings.Lines(b.rawLog()) {
		m := format.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("line %q", line)
		}
		if _, err := time.Parse(time.RFC3339Nano, m[1]); err != nil {
			t.Error(err)
		}
		if m[2] == "stdout" {
			stdout = append(stdout, m[3]+m[4])
		} else if m[3]+m[4] != "Fthree" {
			t.Errorf("stderr has %q", line)
		}
	}
	if got := strings.Join(stdout, "|"); got != "Fone|Ptwo parts" {
		t.Errorf("stdout is %s", got)
	}
}

func TestLogGoesOnInANewFile(t *testing.T) {
	config := containerConfig("echo")
	config.Stdin = true
	b := newPlane(t).pod().start(config)
	p, err := b.live(b.id)
	if err != nil {
		t.Fatal(err)
	}
	say := func(text string) {
		if _, err := p.streams.stdin().WriteString(text); err != nil {
			t.Fatal(err)
		}
		b.says(text)
	}
	say("before\n")
	path := b.status().GetLogPath()
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	if err := b.ReopenContainerLog(t.Context(), b.id); err != nil {
		t.Fatal(err)
	}
	say("after\n")
	if strings.Contains(b.output(), "before") {
		t.Errorf("the new log has %q", b.output())
	}
	if err := b.StopContainer(t.Context(), b.id, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := b.ReopenContainerLog(t.Context(), b.id); err == nil {
		t.Error("the log of an exited container was reopened")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a new log file exists")
	}
}

func TestTerminalOfAContainerIsItsLog(t *testing.T) {
	config := containerConfig("size", ";", "complain", "both")
	config.Tty = true
	out, status := newPlane(t).pod().run(config)
	if out != "0x0\r\nboth" {
		t.Errorf("%q, exit code %d", out, status.GetExitCode())
	}
}

func TestTerminalsAreTheContainersOwn(t *testing.T) {
	config := containerConfig("terminal")
	config.Tty = true
	if out, _ := newPlane(t).pod().run(config); out != "on /dev/pts/0, could open another\r\n" {
		t.Errorf("%q", out)
	}
}
