package report

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

// fixedFolder is the subfolder for findings that no longer occur.
const fixedFolder = "fixed"

// KeepOne saves a finding as Keep does, but as soon as the finding is known. Keep saves the finding
// again at the end, with the counts that are known only then.
func KeepOne(f *judge.Finding, o KeepOptions) error {
	one := &Report{Findings: []judge.Finding{*f}}
	err := one.Keep(o)
	*f = one.Findings[0]
	return err
}

// MoveFixed moves the file of a finding that no longer occurs, and its trace, to the
// subfolder fixed, and adds the finding to the report.
func (r *Report) MoveFixed(s *Saved) error {
	from := filepath.FromSlash(s.Finding.File)
	dir := filepath.Join(filepath.Dir(from), fixedFolder)
	to := filepath.Join(dir, filepath.Base(from))
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.Rename(from, to)
	}
	if err != nil {
		return fmt.Errorf("moving finding %s, which no longer occurs: %w", inline(s.Finding.ID), err)
	}
	r.Fixed = append(r.Fixed, Fixed{ID: s.Finding.ID, Verdict: s.Finding.Verdict, Sentence: s.Finding.Sentence, File: filepath.ToSlash(to)})
	trace := tracePath(filepath.Dir(from), s.Finding)
	if err := os.Rename(trace, filepath.Join(dir, filepath.Base(trace))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("moving the trace of finding %s: %w", inline(s.Finding.ID), err)
	}
	return nil
}
