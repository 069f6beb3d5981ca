// Package family finds all processes that a run has started, directly or indirectly, even
// if they have become detached: children of children, processes whose parent has ended,
// and processes in a separate session.
//
// It reads /proc, so it works only on Linux.
package family

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A Process is one row of /proc.
type Process struct {
	PID, Parent, Group, Session int
	State                       byte
	// Marked reports whether the environment of the process has the mark of the run.
	Marked bool
}

// A Family is identified by its first process and by a mark.
type Family struct {
	// Root is the leader of the session in which all other members start. It may have
	// ended. Zero means that there is no root.
	Root int
	// Mark is an environment variable of Root, in the form NAME=value. No process outside
	// the family has this variable.
	Mark string
}

// Members lists the living members of the family, without its root.
func (f Family) Members() ([]Process, error) {
	all, err := list(f.Mark)
	if err != nil {
		return nil, err
	}
	var living []Process
	for _, p := range f.in(all) {
		if p.PID != f.Root && p.State != 'Z' && p.State != 'X' {
			living = append(living, p)
		}
	}
	return living, nil
}

// in selects the processes that belong to the family. A process belongs to the family if
// it is marked, or if its parent, group leader or session leader belongs to the family.
func (f Family) in(all []Process) []Process {
	member := map[int]bool{}
	if f.Root != 0 {
		member[f.Root] = true
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !member[p.PID] && (p.Marked || member[p.Parent] || member[p.Group] || member[p.Session]) {
				member[p.PID], grown = true, true
			}
		}
	}
	var found []Process
	for _, p := range all {
		if member[p.PID] {
			found = append(found, p)
		}
	}
	return found
}

// End sends SIGTERM to every member, and kills the members that have not ended within
// grace. It returns the number of members that were alive at first.
func (f Family) End(grace time.Duration) (int, error) {
	first, err := f.signal(syscall.SIGTERM)
	if err != nil || first == 0 {
		return first, err
	}
	for _, step := range []struct {
		signal syscall.Signal
		within time.Duration
	}{{0, grace}, {syscall.SIGKILL, 10 * time.Second}} {
		for deadline := time.Now().Add(step.within); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			// The members are listed again each time, because a dying process may have
			// started another.
			if left, err := f.signal(step.signal); err != nil || left == 0 {
				return first, err
			}
		}
	}
	return first, fmt.Errorf("some processes of %s are still running after SIGKILL", f.Mark)
}

func (f Family) signal(s syscall.Signal) (int, error) {
	members, err := f.Members()
	for _, p := range members {
		_ = syscall.Kill(p.PID, s) // the process may have ended by itself
	}
	return len(members), err
}

// list reads all processes. It omits processes that end while it reads /proc.
func list(mark string) ([]Process, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	if len(dirs) == 0 {
		return nil, fmt.Errorf("/proc lists no processes; the benchmark needs Linux")
	}
	var all []Process
	for _, dir := range dirs {
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		p, err := parseStat(string(stat))
		if err != nil {
			return nil, fmt.Errorf("reading %s/stat: %w", dir, err)
		}
		// If the process belongs to another user, its environment cannot be read, and the
		// process is not part of the family.
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		p.Marked = marked(environ, mark)
		all = append(all, p)
	}
	return all, nil
}

func marked(environ []byte, mark string) bool {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if mark != "" && string(entry) == mark {
			return true
		}
	}
	return false
}

// parseStat reads a line of /proc/PID/stat; see proc_pid_stat(5).
func parseStat(line string) (p Process, err error) {
	// The program's name is in parentheses and may contain any character.
	open, end := strings.IndexByte(line, '('), strings.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return p, fmt.Errorf("no name in %q", line)
	}
	fields := strings.Fields(line[end+1:])
	if len(fields) < 4 || len(fields[0]) != 1 {
		return p, fmt.Errorf("too short: %q", line)
	}
	p.State = fields[0][0]
	if p.PID, err = strconv.Atoi(strings.TrimSpace(line[:open])); err != nil {
		return p, err
	}
	for i, to := range []*int{&p.Parent, &p.Group, &p.Session} {
		if *to, err = strconv.Atoi(fields[1+i]); err != nil {
			return p, err
		}
	}
	return p, nil
}
