package contract

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A process holds data from /proc about one process.
type process struct {
	pid  int
	args []string
	// held lists the names of open and mapped files. The name of a socket is
	// "socket:[inode]".
	held []string
}

func (p process) String() string { return fmt.Sprintf("%d %s", p.pid, strings.Join(p.args, " ")) }

// marked lists the processes that have the variable in their environment.
// Children inherit the variable, and keep it even if they get another parent.
func marked(variable string) (found []process) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		// A process that has ended but has not been reaped has no environment.
		if err != nil || !slices.Contains(strings.Split(string(environ), "\x00"), variable) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(dir))
		cmdline, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		p := process{pid: pid, args: strings.Split(strings.TrimRight(string(cmdline), "\x00"), "\x00")}
		fds, _ := os.ReadDir(filepath.Join(dir, "fd"))
		for _, fd := range fds {
			if name, err := os.Readlink(filepath.Join(dir, "fd", fd.Name())); err == nil {
				p.held = append(p.held, name)
			}
		}
		p.held = append(p.held, mapped(dir)...)
		found = append(found, p)
	}
	return found
}

func mapped(dir string) (names []string) {
	maps, _ := os.ReadFile(filepath.Join(dir, "maps"))
	for line := range strings.Lines(string(maps)) {
		if i := strings.IndexByte(line, '/'); i >= 0 {
			names = append(names, strings.TrimSpace(line[i:]))
		}
	}
	return names
}

// footprint lists the resources that processes hold outside their own memory.
type footprint struct {
	sockets []string // inodes of listening sockets
	locks   []string // locked files, in the form that locked returns
	folders []string // under a temporary folder
}

// look returns the current footprint of the processes.
func look(processes []process, temporary ...string) (f footprint) {
	listening, locks := listeners(), locked()
	for _, p := range processes {
		f.locks = append(f.locks, locks[p.pid]...)
		for _, name := range append(slices.Clone(p.held), values(p.args)...) {
			if inode, ok := strings.CutPrefix(name, "socket:["); ok && listening[strings.TrimSuffix(inode, "]")] {
				f.sockets = append(f.sockets, strings.TrimSuffix(inode, "]"))
			}
			for _, root := range temporary {
				if rest, ok := strings.CutPrefix(name, root+"/"); ok {
					top, _, _ := strings.Cut(strings.TrimSuffix(rest, " (deleted)"), "/")
					f.folders = append(f.folders, filepath.Join(root, top))
				}
			}
		}
	}
	for _, list := range []*[]string{&f.sockets, &f.locks, &f.folders} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return f
}

// values returns the values of arguments such as --data-dir=/tmp/x, so that a folder is
// known before the program has created it.
func values(args []string) (values []string) {
	for _, arg := range args {
		if _, value, ok := strings.Cut(arg, "="); ok {
			values = append(values, value)
		}
	}
	return values
}

// left returns an error that lists the resources that still exist. It identifies sockets by inode,
// and locks by process and inode, so that it does not confuse them with new sockets and locks of
// other programs. The inode of a deleted file may soon belong to a file of another program.
func (f footprint) left() error {
	var errs []error
	listening := listeners()
	for _, inode := range f.sockets {
		if listening[inode] {
			errs = append(errs, fmt.Errorf("socket %s still listens", inode))
		}
	}
	all := map[string]bool{}
	for _, files := range locked() {
		for _, file := range files {
			all[file] = true
		}
	}
	for _, file := range f.locks {
		if all[file] {
			errs = append(errs, fmt.Errorf("file %s is still locked", file))
		}
	}
	for _, folder := range f.folders {
		if _, err := os.Lstat(folder); !os.IsNotExist(err) {
			errs = append(errs, fmt.Errorf("%s is still there", folder))
		}
	}
	return errors.Join(errs...)
}

// listeners returns the inodes of all listening sockets, unix and TCP.
func listeners() map[string]bool {
	inodes := map[string]bool{}
	for table, column := range map[string]struct {
		state, inode int
		listening    string
	}{
		"tcp": {3, 9, "0A"}, "tcp6": {3, 9, "0A"},
		"unix": {3, 6, "00010000"}, // the flag that listen(2) sets
	} {
		data, _ := os.ReadFile("/proc/net/" + table)
		for line := range bytes.Lines(data) {
			fields := strings.Fields(string(line))
			if len(fields) > column.inode && fields[column.state] == column.listening {
				inodes[fields[column.inode]] = true
			}
		}
	}
	return inodes
}

// locked returns the files that each process has locked, by device, inode and process.
func locked() map[int][]string {
	locks := map[int][]string{}
	data, _ := os.ReadFile("/proc/locks")
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line))
		if i := slices.Index(fields, "->"); i >= 0 || len(fields) < 6 {
			continue // waits for a lock, and holds none
		}
		if pid, err := strconv.Atoi(fields[4]); err == nil {
			locks[pid] = append(locks[pid], fields[5]+" of process "+fields[4])
		}
	}
	return locks
}
