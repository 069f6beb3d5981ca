package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// benchmark names a benchmark in the root module. Only the tests of the root module can
// start a plane and a proxy in one process.
const benchmark = "BenchmarkReconciles"

// recording builds and runs the benchmark of the recording proxy, which uses a real API
// server.
func (o *options) recording(ctx context.Context, work string, r *report) error {
	if o.reconciles == 0 {
		return nil
	}
	fmt.Fprintln(os.Stderr, "building the benchmark of the recording proxy")
	program := filepath.Join(work, "lab.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", program, "./internal/check/lab")
	build.Dir, build.Env = o.root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the benchmark of the recording proxy: %w\n%s", err, out)
	}
	cmd := exec.CommandContext(ctx, program, "-test.run=^$", "-test.bench=^"+benchmark+"$",
		fmt.Sprintf("-test.benchtime=%dx", o.reconciles), "-test.timeout=30m")
	// The server that the benchmark starts is in the same process group, so it ends when
	// the group is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Dir, cmd.Env = filepath.Join(o.root, "internal", "check", "lab"), os.Environ()
	// Upstream's libraries may write to the standard error in the middle of a line of figures.
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("running %s: %w\n%s%s", benchmark, err, out, messages.Bytes())
	}
	if r.Recording, err = metrics(out); err != nil {
		return err
	}
	if len(r.Recording) == 0 {
		return fmt.Errorf("running %s: its output has no figures:\n%s", benchmark, out)
	}
	return nil
}

// metrics reads the metrics that the benchmark reports.
func metrics(out []byte) (all []recording, err error) {
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], benchmark+"/") {
			continue
		}
		c := recording{Name: strings.TrimPrefix(fields[0], benchmark+"/")}
		if name, _, ok := strings.Cut(c.Name, "-"); ok { // metrics that the testing package adds
			c.Name = name
		}
		into := map[string]*float64{
			"direct-rec/s": &c.DirectPerSec, "proxied-rec/s": &c.ProxiedPerSec, "%fewer-rec/s": &c.FewerPercent,
			"direct-p99-ms": &c.DirectP99, "proxied-p99-ms": &c.ProxiedP99, "%more-p99": &c.MoreP99,
		}
		for i := 2; i+1 < len(fields); i += 2 {
			value := into[fields[i+1]]
			if value == nil {
				continue
			}
			if *value, err = strconv.ParseFloat(fields[i], 64); err != nil {
				return nil, fmt.Errorf("reading %q: %w", lines.Text(), err)
			}
			delete(into, fields[i+1])
		}
		if len(into) > 0 {
			return nil, fmt.Errorf("reading %q: %d figures are missing", lines.Text(), len(into))
		}
		all = append(all, c)
	}
	return all, nil
}
