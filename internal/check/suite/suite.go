// Package suite turns test suites for kuttl and chainsaw into scenarios. It supports the part of
// both formats that needs no real containers and no expression language, and names everything
// that it leaves out.
//
//	files ──reader──▶ documents ──kuttl, chainsaw──▶ draft ──▶ scenario and LeftOut
package suite

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// The formats of suites.
const (
	Kuttl    = "kuttl"
	Chainsaw = "chainsaw"
)

// ErrNone is the error for a folder without any case.
var ErrNone = errors.New("no test case of kuttl or chainsaw was found; name the folder that contains kuttl-test.yaml, the folders of the cases, or files named chainsaw-test.yaml")

// Suite is the result of reading a folder.
type Suite struct {
	Cases []*Case
	// LeftOut lists what belongs to no single case.
	LeftOut []LeftOut
}

// Case is one test case of a suite.
type Case struct {
	Format string
	// Dir is the folder of the case, in the file system that was read.
	Dir string
	// Scenario is nil if nothing of the case could be imported.
	Scenario *scenario.Scenario
	// Short is set if the scenario ends before a part of the case that may change the cluster.
	Short   bool
	LeftOut []LeftOut
}

// LeftOut is a part of a suite that is not in the scenario.
type LeftOut struct {
	File string
	Line int // 0 if the part is a whole file or folder
	What string
	Why  string
}

// Read reads all cases in a folder of the file system. Files that the cases name may be in other
// folders of the file system. Names of scenarios are unique. If there is nothing to read, the error
// is ErrNone.
func Read(fsys fs.FS, dir string) (*Suite, error) {
	info, err := fs.Stat(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("reading a suite: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("reading a suite: %s is not a folder", dir)
	}
	r := &reader{fsys: fsys}
	s := &Suite{}
	if err := s.chainsaw(r, dir); err != nil {
		return nil, err
	}
	if err := s.kuttl(r, dir); err != nil {
		return nil, err
	}
	if len(s.Cases)+len(s.LeftOut) == 0 {
		return nil, ErrNone
	}
	s.rename()
	tidy(s.LeftOut)
	for _, c := range s.Cases {
		c.Dir = oneLine(c.Dir)
		tidy(c.LeftOut)
	}
	return s, nil
}

// tidy shortens the texts to one line each, because they quote what people wrote.
func tidy(all []LeftOut) {
	for i := range all {
		for _, text := range []*string{&all[i].File, &all[i].What, &all[i].Why} {
			*text = oneLine(*text)
		}
	}
}

func oneLine(text string) string {
	const most = 300
	text = strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// Scenarios returns the scenarios of all cases that have one.
func (s *Suite) Scenarios() (all []*scenario.Scenario) {
	for _, c := range s.Cases {
		if c.Scenario != nil {
			all = append(all, c.Scenario)
		}
	}
	return all
}

// rename makes the names of the scenarios unique: it adds the names of the folders above, and
// finally a number.
func (s *Suite) rename() {
	used := map[string]bool{}
	for _, c := range s.Cases {
		if c.Scenario == nil {
			continue
		}
		name := c.Scenario.Name
		for above := path.Dir(c.Dir); used[name] && above != "." && above != "/"; above = path.Dir(above) {
			name = label(path.Base(above) + "-" + name)
		}
		for i, first := 2, name; used[name]; i++ {
			name = label(fmt.Sprintf("%s-%d", first[:min(len(first), mostName-5)], i))
		}
		used[name], c.Scenario.Name = true, name
	}
}

// Merged returns the list with equal parts of one file joined: the first line of each stays, and
// the number of further places is added to What.
func Merged(all []LeftOut) []LeftOut {
	var merged []LeftOut
	count := map[LeftOut]int{}
	for _, l := range all {
		key := l
		key.Line = 0
		if count[key]++; count[key] == 1 {
			merged = append(merged, l)
		}
	}
	for i, l := range merged {
		key := l
		key.Line = 0
		if n := count[key]; n > 1 {
			merged[i].What = fmt.Sprintf("%s (%d times)", l.What, n)
		}
	}
	return merged
}

// Place returns the file and, if it is known, the line.
func (l LeftOut) Place() string {
	if l.Line == 0 {
		return l.File
	}
	return fmt.Sprintf("%s:%d", l.File, l.Line)
}

// mostName is the maximum length of a DNS label, and so of the name of a scenario.
const mostName = 63

// label turns text into a DNS label.
func label(text string) string {
	out := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, strings.ToLower(text))
	out = strings.Trim(out, "-")
	out = strings.Trim(out[:min(len(out), mostName)], "-")
	if out == "" {
		return "case"
	}
	return out
}

// folders returns the folder and all folders below it, except hidden ones and those that hold
// code of others.
func (r *reader) folders(dir string) (all []string, err error) {
	err = fs.WalkDir(r.fsys, dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("reading a suite: %w", err)
		}
		if !entry.IsDir() {
			return nil
		}
		if base := path.Base(name); name != dir && (strings.HasPrefix(base, ".") || slices.Contains([]string{"node_modules", "vendor"}, base)) {
			return fs.SkipDir
		}
		all = append(all, name)
		return nil
	})
	return all, err
}
