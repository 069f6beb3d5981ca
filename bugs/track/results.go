package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// results keeps the rows in a file. The file is written after each row, so that a run that
// takes hours can be interrupted.
type results struct {
	file string // no file is written if empty

	mu   sync.Mutex
	rows []row
}

// newResults reads the rows of an earlier run from the file if it is to be resumed. A file
// that does not exist has no rows.
func newResults(file string, resume bool) (*results, error) {
	k := &results{file: file}
	if !resume {
		return k, nil
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &k.rows); err != nil {
		return nil, fmt.Errorf("%s has no results that can be resumed: %w", file, err)
	}
	return k, nil
}

// find returns the row of a bug with a seed.
func (k *results) find(bug string, seed uint64) (row, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.rows, func(r row) bool { return r.Bug == bug && r.Seed == seed })
	if i < 0 {
		return row{}, false
	}
	return k.rows[i], true
}

// add adds a row, and writes the file.
func (k *results) add(r row) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rows = append(k.rows, r)
	slices.SortFunc(k.rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Seed, b.Seed), cmp.Compare(a.Bug, b.Bug))
	})
	if k.file == "" {
		return nil
	}
	data, err := json.MarshalIndent(k.rows, "", "  ")
	if err != nil {
		return err
	}
	// A rename replaces the file as a whole, even if this program is killed.
	next := k.file + ".next"
	if err := os.WriteFile(next, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(next, k.file)
}
