package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// isolated runs a command in a network namespace that has only a loopback interface. The user
// namespace is for users other than root.
var isolated = []string{"unshare", "--map-root-user", "--net", "sh", "-c", `ip link set lo up && exec "$@"`, "sh"}

// ending is the time that a check may need after its budget, to build the operator and to write its report.
const ending = 5 * time.Minute

// report returns the report on a side of a pair. It runs the check if there is no report yet,
// unless only existing reports are wanted. Then the result may be nil.
func (o *options) report(ctx context.Context, p *pair, side string) (*report, error) {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, p.ID+"-"+side)
	r, err := readReport(name + ".json")
	if !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	if o.list {
		return nil, nil
	}
	source := filepath.Join(dir, p.ID, side)
	if err := checkout(ctx, dir, source, p, side); err != nil {
		return nil, err
	}
	if err := o.check(ctx, source, name, p.Check); err != nil {
		return nil, err
	}
	return readReport(name + ".json")
}

// checkout prepares the sources of a side. The other pairs of a repository use the same clone.
func checkout(ctx context.Context, dir, source string, p *pair, side string) error {
	if err := os.RemoveAll(source); err != nil { // it may be incomplete
		return err
	}
	clone := filepath.Join(dir, filepath.FromSlash(p.Repository))
	if _, err := os.Stat(clone); err != nil {
		if err := command(ctx, dir, "git", "clone", "--quiet", "--no-checkout", "https://github.com/"+p.Repository, clone); err != nil {
			return err
		}
	}
	for _, line := range [][]string{
		{"git", "-C", clone, "worktree", "prune"},
		{"git", "-C", clone, "worktree", "add", "--quiet", "--force", "--detach", source, p.commit(side)},
		{"sh", "-ec", "cd \"$1\"\n" + p.Prepare, "sh", source},
		{"sh", "-ec", `cd "$1"; test -d vendor || go mod download`, "sh", source},
	} {
		if err := command(ctx, dir, line[0], line[1:]...); err != nil {
			return err
		}
	}
	return nil
}

// check runs koboshi check. It exits with 1 if there are findings, and with 2 if there was no time for
// the faults, with a report in both cases.
func (o *options) check(ctx context.Context, source, name string, args []string) error {
	koboshi, err := filepath.Abs(o.koboshi)
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, o.budget+ending)
	defer cancel()
	unfinished := name + ".part"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	line := append([]string{}, isolated...)
	line = append(line, koboshi, "check", "--budget="+o.budget.String(), "--seed="+strconv.FormatUint(o.seed, 10), "-o=json="+unfinished, "-o=text")
	line = append(line, args...)
	fmt.Fprintf(os.Stderr, "pairs: %s\n", filepath.Base(name))
	failed := command(limited, source, line[0], line[1:]...)
	if limited.Err() != nil {
		return limited.Err()
	}
	if err := os.Rename(unfinished, name+".json"); err != nil {
		return cmp.Or(failed, err)
	}
	return nil
}

// command runs a command in a folder. Its output goes to the standard error.
func command(ctx context.Context, dir, name string, args ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Stdout, c.Stderr = dir, os.Stderr, os.Stderr
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = time.Minute
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// readReport reads the JSON report of a check.
func readReport(file string) (*report, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &report{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}
