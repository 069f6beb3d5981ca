// Package footprint measures the memory that processes hold, including their files
// in memory-backed file systems, because a store in /dev/shm uses memory just as a heap
// does.
package footprint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Memory is the memory that a set of processes holds in total, in bytes. RSS and PSS both
// include files in memory, with each page counted once.
type Memory struct {
	// RSS counts a page once for each process that maps it.
	RSS int64
	// PSS divides a page among the processes that map it.
	PSS int64
}

// Take adds up the memory of the processes and of files in memory. It counts a file only if before
// does not contain it or one of the processes holds it open.
func Take(before Files, pids []int) (Memory, error) {
	now, err := InMemory()
	if err != nil {
		return Memory{}, err
	}
	return take(before, now, pids)
}

func take(before, now Files, pids []int) (Memory, error) {
	var mappings []mapping
	held := map[string]bool{}
	for _, pid := range pids {
		own, err := mappingsOf(pid)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the process has ended since it was listed
		}
		if err != nil {
			return Memory{}, err
		}
		mappings = append(mappings, own...)
		for _, file := range openFiles(pid) {
			held[file] = true
		}
	}
	return sum(mappings, now.charged(before, held)), nil
}

// sum counts files by their blocks and not by their mappings, so that no page
// is counted twice.
func sum(mappings []mapping, files Files) (m Memory) {
	for _, one := range mappings {
		if _, counted := files[one.file]; counted {
			continue
		}
		m.RSS += one.rss
		m.PSS += one.pss
	}
	for _, size := range files {
		m.RSS += size
		m.PSS += size
	}
	return m
}

// A mapping is a piece of a process's address space.
type mapping struct {
	file     string // the mapped file, if any
	rss, pss int64  // bytes
}

func mappingsOf(pid int) ([]mapping, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return parseSmaps(file)
}

// parseSmaps reads /proc/PID/smaps; see proc_pid_smaps(5).
func parseSmaps(r io.Reader) ([]mapping, error) {
	var found []mapping
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		key, rest, _ := strings.Cut(lines.Text(), " ")
		if !strings.HasSuffix(key, ":") { // the addresses of a new mapping
			found = append(found, mapping{file: mappedFile(lines.Text())})
			continue
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("reading smaps: line %q comes before the first mapping", lines.Text())
		}
		var to *int64
		switch key {
		case "Rss:":
			to = &found[len(found)-1].rss
		case "Pss:":
			to = &found[len(found)-1].pss
		default:
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading smaps: %w", err)
		}
		*to = kb * 1024
	}
	return found, lines.Err()
}

// mappedFile returns the path from a line that contains addresses, rights, offset, device,
// inode and path. The path may contain spaces.
func mappedFile(line string) string {
	for range 5 {
		_, rest, more := strings.Cut(line, " ")
		if !more {
			return ""
		}
		line = strings.TrimLeft(rest, " ")
	}
	return line
}

func openFiles(pid int) (files []string) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // the process has ended and holds nothing
	}
	for _, entry := range entries {
		if file, err := os.Readlink(dir + "/" + entry.Name()); err == nil {
			files = append(files, file)
		}
	}
	return files
}
