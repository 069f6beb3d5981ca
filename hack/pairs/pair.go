package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// The sides of a pair.
const (
	before = "before"
	after  = "after"
)

var sides = [2]string{before, after}

// pair is a bug of an operator of another project.
type pair struct {
	ID         string `json:"-"` // the name of the file
	Repository string `json:"repository"`
	// Bug says in one sentence what is wrong before the fix.
	Bug string `json:"bug"`
	// Before and After are commits.
	Before string `json:"before"`
	After  string `json:"after"`
	// Prepare is a shell script that runs in the checkout of both sides, for what an old operator
	// needs to be built or to start.
	Prepare string `json:"prepare,omitempty"`
	// Check holds the arguments of koboshi check.
	Check []string `json:"check"`
	// Named is a regular expression that matches the finding or the remark about the bug, in the
	// form of finding.text.
	Named string `json:"named"`

	named *regexp.Regexp
}

// commit returns the commit of a side.
func (p *pair) commit(side string) string {
	if side == before {
		return p.Before
	}
	return p.After
}

// read returns the pairs of a folder, in the order of their IDs.
func read(folder string) ([]*pair, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no pair in %s", folder)
	}
	pairs := make([]*pair, len(files))
	for i, file := range files {
		if pairs[i], err = readPair(file); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	return pairs, nil
}

func readPair(file string) (*pair, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := &pair{ID: strings.TrimSuffix(filepath.Base(file), ".yaml")}
	if err := yaml.UnmarshalStrict(data, p); err != nil {
		return nil, err
	}
	for _, field := range []struct{ name, value string }{
		{"repository", p.Repository}, {"bug", p.Bug}, {"before", p.Before}, {"after", p.After}, {"named", p.Named},
	} {
		if field.value == "" {
			return nil, fmt.Errorf("%s is missing", field.name)
		}
	}
	p.named, err = regexp.Compile(p.Named)
	return p, err
}

// choose returns the pairs with the given IDs.
func choose(pairs []*pair, ids []string) (chosen []*pair, err error) {
	for _, id := range ids {
		found := false
		for _, p := range pairs {
			if p.ID == id {
				chosen, found = append(chosen, p), true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no pair %q", id)
		}
	}
	return chosen, nil
}
