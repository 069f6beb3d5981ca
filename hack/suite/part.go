package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// patience is the time that an interrupted part gets to clean up.
const patience = 20 * time.Second

// result describes a part that has ended.
type result struct {
	target string
	err    error
	// wall is the time from start to end. cpu is the processor time of the part and of
	// all processes that it waited for.
	wall, cpu time.Duration
	tests     int
	// failure holds the output of a failed part, except the output of its passing tests.
	failure []byte
	log     string
}

// runPart runs one target of the Makefile in a separate process group.
func runPart(ctx context.Context, target string, o options) result {
	r := result{target: target, log: filepath.Join(o.logs, target+".log")}
	began := time.Now()
	log, err := os.Create(r.log)
	if err != nil {
		r.err = err
		return r
	}
	args := []string{target, "TESTFLAGS=" + o.flags + " -json"}
	for built := range strings.FieldsSeq(o.built) {
		args = append(args, "-o", built)
	}
	cmd := exec.CommandContext(ctx, "make", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = patience
	out := newOutput(log)
	cmd.Stdout, cmd.Stderr = out, out // both use one writer, so the lines keep their order
	r.err = errors.Join(cmd.Run(), out.close(), log.Close())
	r.wall, r.tests = time.Since(began), out.tests
	if state := cmd.ProcessState; state != nil {
		r.cpu = state.UserTime() + state.SystemTime()
	}
	if r.err != nil {
		r.failure = out.failure()
	}
	return r
}
