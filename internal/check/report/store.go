package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// SavedVersion is the version of a finding's file.
const SavedVersion = 1

// Saved is a finding as a file: all that is needed to run it again.
type Saved struct {
	// Version is SavedVersion; SaveFinding sets it.
	Version int           `json:"version"`
	Finding judge.Finding `json:"finding"`
	// Scenario is inlined, so that the file can be moved.
	Scenario scenario.Scenario `json:"scenario"`
	// Subject are the flags and the command line to be given to check again.
	Subject []string `json:"subject"`
	// Plane is the profile of the plane.
	Plane string `json:"plane"`
	// Trace is kept beside the file, as ID.trace.jsonl. It is nil if that is not
	// there: a replay does not need it.
	Trace []trace.Entry `json:"-"`
}

const (
	findingSuffix = ".json"
	traceSuffix   = ".trace.jsonl"
)

// SaveFinding writes a finding into the folder, which it makes if need be, and
// returns the path. A finding that is there already, by its ID, is replaced.
func SaveFinding(dir string, s Saved) (path string, err error) {
	if s.Finding.ID == "" {
		return "", errors.New("saving a finding: it has no ID")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("saving finding %s: %w", inline(s.Finding.ID), err)
	}
	s.Version = SavedVersion
	path = filepath.Join(dir, findingName(s.Finding))
	s.Finding.File = filepath.ToSlash(path)
	// The trace first: who sees the finding sees its trace.
	if err := saveTrace(tracePath(dir, s.Finding), s); err != nil {
		return "", err
	}
	data, err := encoded(s)
	if err != nil {
		return "", fmt.Errorf("saving finding %s: %w", inline(s.Finding.ID), err)
	}
	return path, writeWhole(path, data)
}

// findingName is "DIVERGED-life-create-1a2b3c4d.json".
func findingName(f judge.Finding) string {
	parts := []string{strings.ToUpper(slug(string(f.Verdict), 40))}
	for _, part := range []string{f.Scenario, f.Step} {
		if s := slug(part, 40); s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(append(parts, slug(f.ID, 64)), "-") + findingSuffix
}

func tracePath(dir string, f judge.Finding) string {
	return filepath.Join(dir, slug(f.ID, 64)+traceSuffix)
}

// slug is text as a part of a file's name: small letters, digits and dashes.
// A length of 0 does not shorten it.
func slug(text string, most int) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	s := strings.Join(words, "-")
	if most > 0 && len(s) > most {
		s = strings.TrimRight(s[:most], "-")
	}
	return s
}

func saveTrace(path string, s Saved) error {
	if len(s.Trace) == 0 {
		err := os.Remove(path) // of an earlier run, which would be taken for this one's
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("saving finding %s: %w", inline(s.Finding.ID), err)
		}
		return nil
	}
	var b bytes.Buffer
	header := trace.Header{Version: trace.Version, Subject: strings.Join(s.Subject, " ")}
	if err := trace.Write(&b, header, s.Trace); err != nil {
		return fmt.Errorf("saving the trace of finding %s: %w", inline(s.Finding.ID), err)
	}
	return writeWhole(path, b.Bytes())
}

// writeWhole replaces a file in one step: whoever reads it sees the old or the
// new one, also after a crash.
func writeWhole(path string, data []byte) error {
	// Created and not by CreateTemp, so that the umask says who may read it.
	hidden := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d", filepath.Base(path), os.Getpid()))
	file, err := os.OpenFile(hidden, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // a scenario may hold a Secret
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(hidden, path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, errors.Join(err, os.Remove(hidden)))
	}
	return nil
}

// LoadFinding reads what SaveFinding wrote, with its trace if that is beside it.
// If only the trace is damaged, the finding is returned with the error.
func LoadFinding(path string) (*Saved, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a finding: %w", err)
	}
	if err := readable(path, data, "finding", SavedVersion); err != nil {
		return nil, err
	}
	var s Saved
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; delete it, or restore a copy", path, err)
	}
	if s.Finding.ID == "" || s.Finding.Verdict == "" || s.Scenario.Name == "" {
		return nil, fmt.Errorf("%s is damaged: it lacks the finding's id, its verdict or the scenario; delete it, or restore a copy", path)
	}
	s.Finding.File = filepath.ToSlash(path) // it may have been moved
	s.Trace, err = loadTrace(tracePath(filepath.Dir(path), s.Finding))
	return &s, err
}

func loadTrace(path string) ([]trace.Entry, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the trace of a finding: %w", err)
	}
	_, entries, err := trace.Read(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%s is damaged: %w; delete it, the finding can be replayed without", path, err)
	}
	return entries, nil
}

// LoadFindings reads all findings of a folder, the most serious first; that it
// does not exist means that there are none. Files that cannot be read are named
// in the error, and the others are returned all the same.
func LoadFindings(dir string) ([]*Saved, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading findings: %w", err)
	}
	var all []*Saved
	var damaged []error
	for _, file := range files {
		name := file.Name()
		if file.IsDir() || strings.HasPrefix(name, ".") || filepath.Ext(name) != findingSuffix {
			continue
		}
		s, err := LoadFinding(filepath.Join(dir, name))
		if err != nil {
			damaged = append(damaged, err)
		}
		if s != nil {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *Saved) int { return rank(a.Finding.Verdict) - rank(b.Finding.Verdict) })
	return all, errors.Join(damaged...)
}
