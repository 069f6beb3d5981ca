package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// bug is a bug.yaml.
type bug struct {
	ID    string   `json:"id"`
	Class string   `json:"class"`
	Title string   `json:"title"`
	Real  []string `json:"real"`
	// Finds are the kinds of faults that may find it; none means that it needs no
	// fault. Verdicts are those that are right about it.
	Finds    []string `json:"finds"`
	Verdicts []string `json:"verdicts"`
	// Args are more arguments of koboshi check.
	Args []string `json:"args"`
	// Command and Repaired are how it and its twin are started, in the folder, if
	// they are not part of the program bugs.
	Command  []string `json:"command"`
	Repaired []string `json:"repaired"`

	dir string
}

// name is the folder's, without the id.
func (b *bug) name() string {
	_, name, _ := strings.Cut(filepath.Base(b.dir), "-")
	return name
}

// load reads all bug.yaml below root, in the order of their ids, and keeps those
// that are asked for.
func load(root string, only []string, shard string) ([]*bug, error) {
	files, err := filepath.Glob(filepath.Join(root, "*", "bug.yaml"))
	if err != nil {
		return nil, err
	}
	var all []*bug
	for _, file := range files {
		b, err := read(file)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	slices.SortFunc(all, func(a, b *bug) int { return strings.Compare(a.ID, b.ID) })
	if all, err = chosen(all, only); err != nil {
		return nil, err
	}
	return part(all, shard)
}

func read(file string) (*bug, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	b := &bug{}
	if err := yaml.UnmarshalStrict(data, b); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if b.dir, err = filepath.Abs(filepath.Dir(file)); err != nil {
		return nil, err
	}
	switch {
	case b.ID == "" || b.Class == "":
		return nil, fmt.Errorf("%s: id and class have to be set", file)
	case (len(b.Command) == 0) != (len(b.Repaired) == 0):
		return nil, fmt.Errorf("%s: command and repaired go together", file)
	case len(b.Verdicts) == 0:
		return nil, fmt.Errorf("%s: verdicts names none that would be right", file)
	}
	return b, nil
}

// chosen keeps the bugs that are named.
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

// part keeps every n-th bug.
func part(all []*bug, shard string) ([]*bug, error) {
	if shard == "" {
		return all, nil
	}
	var i, n int
	if _, err := fmt.Sscanf(shard, "%d/%d", &i, &n); err != nil || i < 1 || i > n {
		return nil, fmt.Errorf("-shard %s: write i/n, such as 1/4", shard)
	}
	var some []*bug
	for k := i - 1; k < len(all); k += n {
		some = append(some, all[k])
	}
	return some, nil
}
