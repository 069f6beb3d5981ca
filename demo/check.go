package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
)

const (
	// checkTimeout limits one koboshi check. A check takes a few seconds on a quiet machine.
	checkTimeout = 5 * time.Minute
	// checkDir is the folder for findings and reports.
	checkDir = stateDir + "/check"
	// planted is the folder of the controller with the bug, and of its repaired twin.
	planted = "bugs/d3-no-precondition"
)

// checkStory demonstrates koboshi check on a controller with a bug, and on its repaired twin.
var checkStory = []chapter{
	{"A small controller, and a fault at each of its writes", (*demo).findBug},
	{"The repaired controller gets the same faults", (*demo).checkTwin},
}

func (d *demo) findBug(ctx context.Context) error {
	say("This controller replaces an object: it deletes the old one and creates a new one\nunder the same name. Its author tested it, and it works:")
	if err := showLine(path.Join(planted, "bug.go"), "r.Delete("); err != nil {
		return err
	}
	say("koboshi check first watches the controller without faults. Then it delays one of\nits watches in each run, as a busy cluster may do, and compares the results:")
	return d.check(ctx, 1, "report.html")
}

func (d *demo) checkTwin(ctx context.Context) error {
	say("The cache still had the old object, so the controller deleted the new one by name.\nThe repaired twin deletes only the object that it has seen:")
	if err := showLine(path.Join(planted, "repaired.go"), "r.Delete("); err != nil {
		return err
	}
	say("The same check:")
	return d.check(ctx, 0, "repaired.html", "--repaired")
}

// check runs koboshi check on the controller, and shows the report. The exit code must be
// want.
func (d *demo) check(ctx context.Context, want int, page string, flags ...string) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	lines := [][]string{
		{"check", "--crds", planted + "/crd.yaml"},
		{"--scenario", planted + "/scenario.yaml", "--profile", "gc"},
		{"--faults", "delay-watch", "--stop-at-first", "--seed", "1"},
		{"--findings", checkDir + "/findings", "-o", "html=" + checkDir + "/" + page},
		append([]string{"--", "bin/bugs", "d3"}, flags...),
	}
	var shown []string
	for _, line := range lines {
		shown = append(shown, strings.Join(line, " "))
	}
	show("koboshi " + strings.Join(shown, " \\\n      ") + "\n")
	args := slices.Concat(lines...)
	var report, progress bytes.Buffer
	cmd := exec.CommandContext(ctx, d.binary, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = stopTimeout
	cmd.Stdout, cmd.Stderr = &report, &progress
	if interactive() {
		cmd.Stderr = os.Stderr
	}
	err := cmd.Run()
	fmt.Print(report.String())
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return fmt.Errorf("koboshi check: %w", err)
	}
	if code := cmd.ProcessState.ExitCode(); code != want {
		return fmt.Errorf("koboshi check ended with exit code %d, but should have ended with %d\n%s", code, want, progress.String())
	}
	return nil
}

// showLine prints the first line of a file that contains the text.
func showLine(file, text string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		if strings.Contains(line, text) {
			fmt.Printf("\n      %s\n", strings.TrimSpace(line))
			return nil
		}
	}
	return fmt.Errorf("%s has no line with %q", file, text)
}

func (d *demo) tellAfterCheck() {
	fmt.Printf("\n%s\n", bold("Next steps"))
	fmt.Printf(`The report is also a page with the timeline of the run: %s/report.html

  cd YOUR/PROJECT && koboshi check   # any kubebuilder project, as it is
  make demo-operators                # Kubernetes in one process, and two operators

`, checkDir)
}
