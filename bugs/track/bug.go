package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// bug is the content of a bug.yaml, or of the clean.yaml of a controller that has no bug.
type bug struct {
	ID    string   `json:"id"`
	Class string   `json:"class"`
	Title string   `json:"title"`
	Real  []string `json:"real"`
	// Finds lists the kinds of faults that may find the bug. Finds is empty if no fault is needed.
	// Verdicts lists the correct verdicts.
	Finds    []string `json:"finds"`
	Verdicts []string `json:"verdicts"`
	// Args are additional arguments for koboshi check.
	Args []string `json:"args"`
	// Command and Repaired start the controller and its twin in the folder of the bug, if
	// they are not part of the program bugs.
	Command  []string `json:"command"`
	Repaired []string `json:"repaired"`

	dir   string
	clean bool // the controller has no bug, and is its own twin
}

// name returns the name of the folder, without the ID.
func (b *bug) name() string {
	_, name, _ := strings.Cut(filepath.Base(b.dir), "-")
	return name
}

// load reads every bug.yaml and clean.yaml in the folders of root, and returns the
// selected ones in the order of their IDs.
func load(root string, only []string, shard string) ([]*bug, error) {
	var all []*bug
	for _, name := range []string{"bug.yaml", cleanFile} {
		files, err := filepath.Glob(filepath.Join(root, "*", name))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			b, err := read(file)
			if err != nil {
				return nil, err
			}
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b *bug) int { return strings.Compare(a.ID, b.ID) })
	all, err := chosen(all, only)
	if err != nil {
		return nil, err
	}
	return part(all, shard)
}

// cleanFile describes a controller that has no bug.
const cleanFile = "clean.yaml"

func read(file string) (*bug, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	b := &bug{}
	if err := yaml.UnmarshalStrict(data, b); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	b.clean = filepath.Base(file) == cleanFile
	if b.dir, err = filepath.Abs(filepath.Dir(file)); err != nil {
		return nil, err
	}
	switch {
	case b.ID == "" || b.Class == "":
		return nil, fmt.Errorf("%s: id and class must be set", file)
	case (len(b.Command) == 0) != (len(b.Repaired) == 0):
		return nil, fmt.Errorf("%s: set both \"command\" and \"repaired\", or neither of them", file)
	case b.clean && len(b.Finds)+len(b.Verdicts)+len(b.Command) > 0:
		return nil, fmt.Errorf("%s: finds, verdicts and command are allowed only in bug.yaml", file)
	case !b.clean && len(b.Verdicts) == 0:
		return nil, fmt.Errorf("%s: the list \"verdicts\" must contain at least one verdict", file)
	}
	return b, nil
}

// chosen returns the named bugs, or all bugs if none is named.
func chosen(all []*bug, only []string) ([]*bug, error) {
	if len(only) == 0 {
		return all, nil
	}
	var some []*bug
	for _, id := range only {
		i := slices.IndexFunc(all, func(b *bug) bool { return b.ID == strings.TrimSpace(id) })
		if i < 0 {
			return nil, fmt.Errorf("-only: there is no bug %q", id)
		}
		some = append(some, all[i])
	}
	return some, nil
}

// part returns the bugs of one shard, i/n: every n-th bug, starting with the i-th.
func part(all []*bug, shard string) ([]*bug, error) {
	if shard == "" {
		return all, nil
	}
	var i, n int
	if _, err := fmt.Sscanf(shard, "%d/%d", &i, &n); err != nil || i < 1 || i > n {
		return nil, fmt.Errorf("-shard %s does not have the form i/n, such as 1/4", shard)
	}
	var some []*bug
	for k := i - 1; k < len(all); k += n {
		some = append(some, all[k])
	}
	return some, nil
}
