package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// stat returns the fields of /proc/PID/stat that follow the name of the program: the state,
// the parent and more; see proc(5). The name of the program may contain any characters.
func stat(dir string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 2 {
		return nil, fmt.Errorf("%s/stat has %d fields", dir, len(fields))
	}
	return fields, nil
}

// Descendants returns the command lines of the program's descendants that have the argument
// arg.
func (p *Process) Descendants(arg string) ([]string, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	parents, lines := map[int]int{}, map[int]string{}
	for _, dir := range dirs {
		fields, err := stat(dir)
		if err != nil {
			continue // the process has ended
		}
		pid, _ := strconv.Atoi(filepath.Base(dir))
		parents[pid], _ = strconv.Atoi(fields[1])
		if line, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil && fields[0] != "Z" {
			lines[pid] = string(line)
		}
	}
	var found []string
	for pid, line := range lines {
		if strings.Contains("\x00"+line+"\x00", "\x00"+arg+"\x00") && below(parents, pid, p.PID) {
			found = append(found, strings.ReplaceAll(strings.TrimSuffix(line, "\x00"), "\x00", " "))
		}
	}
	return found, nil
}

func below(parents map[int]int, pid, ancestor int) bool {
	for range 100 { // a reused PID could form a cycle
		if pid = parents[pid]; pid <= 1 {
			return false
		}
		if pid == ancestor {
			return true
		}
	}
	return false
}
