// Package journal records which faults of a check have been run, so that an interrupted
// check can be resumed.
//
//	check ──Found, Doubtful, Ran──▶ .koboshi/journal/check-….jsonl ──Resume──▶ next check
//
// A journal is a file of JSON lines. The first line identifies the check; each further line is
// written as soon as its result is known, so that even a killed check loses only the results of
// runs in progress. A check holds a lock on its journal while it runs, and removes the journal
// after it has run everything.
package journal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
)

// Version is the version of the format. Journals of other versions cannot be resumed.
const Version = 1

const (
	prefix, suffix = "check-", ".jsonl"
	// most is the number of journals that are kept. The oldest ones are removed first.
	most = 8
	// longestLine limits the length of a line. A finding with its detail takes a few
	// kilobytes.
	longestLine = 16 << 20
)

// Header identifies a check.
type Header struct {
	Version int `json:"version"`
	// Program is the version of koboshi. Flags holds the flags that determine what is
	// checked and which faults are injected.
	Program string   `json:"program"`
	Flags   []string `json:"flags"`
	// Subject is a hash of the controller and of everything that is installed for it.
	// Scenarios is a hash of the scenarios.
	Subject   string    `json:"subject,omitempty"`
	Scenarios string    `json:"scenarios,omitempty"`
	Seed      uint64    `json:"seed"`
	Started   time.Time `json:"started"`
}

// Differs returns what distinguishes the check of h from another check, or "". Differs skips a
// field that is still unknown in one of the two headers.
func (h Header) Differs(other Header) string {
	switch {
	case h.Program != other.Program:
		return fmt.Sprintf("another version of koboshi (%s)", h.Program)
	case !slices.Equal(h.Flags, other.Flags):
		return fmt.Sprintf("other flags (%s)", or(strings.Join(h.Flags, " "), "none"))
	case h.Subject != "" && other.Subject != "" && h.Subject != other.Subject:
		return "another build of the controller, or other manifests"
	case h.Scenarios != "" && other.Scenarios != "" && h.Scenarios != other.Scenarios:
		return "other scenarios or samples"
	}
	return ""
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// Ran is the result of a fault whose run is complete and whose findings were confirmed or
// rejected. Findings is the number of these findings without the remarks.
type Ran struct {
	Scenario     string         `json:"scenario"`
	Fault        fault.Fault    `json:"fault"`
	Findings     int            `json:"findings,omitempty"`
	NotApplied   string         `json:"notApplied,omitempty"`
	Inconclusive string         `json:"inconclusive,omitempty"`
	Pruned       bool           `json:"pruned,omitempty"`
	Took         time.Duration  `json:"took,omitempty"`
	Used         []judge.Unused `json:"used,omitempty"`
	// SecondKills lists the kills during the recovery that are worth a run.
	SecondKills []fault.SecondKill `json:"secondKills,omitempty"`
}

// Doubtful is a finding that was not confirmed, with the reason.
type Doubtful struct {
	Scenario string        `json:"scenario"`
	Fault    fault.Fault   `json:"fault"`
	Finding  judge.Finding `json:"finding"`
	Why      string        `json:"why"`
}

// line is a line after the header. One field is set.
type line struct {
	Ran      *Ran           `json:"ran,omitempty"`
	Found    *judge.Finding `json:"found,omitempty"`
	Doubtful *Doubtful      `json:"doubtful,omitempty"`
}

// Known holds what an interrupted check has recorded.
type Known struct {
	Header
	Ran      []Ran
	Found    []judge.Finding
	Doubtful []Doubtful
}

// Journal is the journal of a check in progress. A nil Journal records nothing. Its methods
// are safe for concurrent use.
type Journal struct {
	dir    string
	header Header

	mu     sync.Mutex
	file   *os.File // nil until there is something to record
	broken error
}

// New returns the journal of a new check. It creates no file until there is something to
// record.
func New(dir string, h Header) *Journal {
	h.Version = Version
	return &Journal{dir: dir, header: h}
}

// Identify completes the header before anything is recorded.
func (j *Journal) Identify(subject, scenarios string) {
	if j != nil {
		j.header.Subject, j.header.Scenarios = subject, scenarios
	}
}

// Header returns the header of the journal.
func (j *Journal) Header() Header { return j.header }

// Ran records the result of a fault.
func (j *Journal) Ran(r Ran) { j.append(line{Ran: &r}) }

// Found records a confirmed finding.
func (j *Journal) Found(f judge.Finding) { j.append(line{Found: &f}) }

// Doubtful records a finding that was not confirmed.
func (j *Journal) Doubtful(d Doubtful) { j.append(line{Doubtful: &d}) }

// append writes a line. After the first error, append writes nothing more, because a missing line
// would be mistaken for a fault that was not run.
func (j *Journal) append(l line) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return
	}
	if j.file == nil {
		if j.broken = j.create(); j.broken != nil {
			return
		}
	}
	j.broken = write(j.file, l)
}

// Err returns the error that made the journal incomplete, or nil.
func (j *Journal) Err() error {
	if j == nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.broken
}

func write(file *os.File, v any) error {
	data, err := json.Marshal(v)
	if err == nil {
		_, err = file.Write(append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the journal: %w", err)
	}
	return nil
}

// create creates the file of the journal under a name that no other check uses.
func (j *Journal) create() error {
	if err := os.MkdirAll(j.dir, 0o755); err != nil {
		return fmt.Errorf("creating the journal: %w", err)
	}
	prune(j.dir)
	name := prefix + j.header.Started.UTC().Format("20060102-150405") + "-*" + suffix
	file, err := os.CreateTemp(j.dir, name)
	if err != nil {
		return fmt.Errorf("creating the journal: %w", err)
	}
	if err := errors.Join(lock(file), write(file, j.header)); err != nil {
		return errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	j.file = file
	return nil
}

// Close closes the journal. Close removes the journal if the check ran everything.
func (j *Journal) Close(complete bool) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return
	}
	if complete {
		_ = os.Remove(j.file.Name())
		_ = os.Remove(j.dir) // only if it is empty
	}
	_ = j.file.Close()
	j.file, j.broken = nil, errors.New("the journal is closed")
}

// Resume opens the journal of the newest interrupted check that matches want, and returns the
// records in the journal. If no journal matches, the error gives the reason.
func Resume(dir string, want Header) (*Journal, *Known, error) {
	var other string
	for _, path := range journals(dir) {
		j, known, err := open(dir, path)
		if err != nil {
			other = or(other, err.Error())
			continue
		}
		differs := known.Differs(want)
		if differs == "" {
			return j, known, nil
		}
		j.Close(false)
		other = or(other, fmt.Sprintf("the check recorded in %s was made with %s", path, differs))
	}
	if other == "" {
		return nil, nil, fmt.Errorf("there is no interrupted check in %s; omit --resume", dir)
	}
	return nil, nil, fmt.Errorf("%s; omit --resume to start again", other)
}

// open opens a journal that no running check uses.
func open(dir, path string) (*Journal, *Known, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the journal: %w", err)
	}
	if lock(file) != nil {
		_ = file.Close()
		return nil, nil, fmt.Errorf("the check recorded in %s is still running", path)
	}
	data, err := os.ReadFile(path)
	var known *Known
	if err == nil {
		known, err = read(data)
	}
	// A line that the killed check did not complete must not run into the next one.
	if err == nil && !bytes.HasSuffix(data, []byte("\n")) {
		_, err = file.WriteString("\n")
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, fmt.Errorf("reading the journal %s: %w", path, err)
	}
	return &Journal{dir: dir, header: known.Header, file: file}, known, nil
}

// read reads a journal. It skips damaged lines: their faults are run again.
func read(data []byte) (*Known, error) {
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, longestLine)
	known := &Known{}
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &known.Header) != nil || known.Version == 0 {
		return nil, errors.New("it does not begin with a header; delete the file")
	}
	if known.Version != Version {
		return nil, fmt.Errorf("it has version %d, but this koboshi reads only version %d", known.Version, Version)
	}
	for lines.Scan() {
		var l line
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			continue
		}
		switch {
		case l.Ran != nil:
			known.Ran = append(known.Ran, *l.Ran)
		case l.Found != nil:
			known.Found = append(known.Found, *l.Found)
		case l.Doubtful != nil:
			known.Doubtful = append(known.Doubtful, *l.Doubtful)
		}
	}
	return known, lines.Err()
}

// journals lists the journals in a folder, the newest first.
func journals(dir string) []string {
	type found struct {
		path string
		at   time.Time
	}
	entries, _ := os.ReadDir(dir) // a folder that cannot be read has no journals
	var all []found
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !strings.HasPrefix(e.Name(), prefix) || !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		all = append(all, found{filepath.Join(dir, e.Name()), info.ModTime()})
	}
	slices.SortStableFunc(all, func(a, b found) int { return b.at.Compare(a.at) })
	paths := make([]string, len(all))
	for i, f := range all {
		paths[i] = f.path
	}
	return paths
}

// prune removes the oldest journals, except those of checks that are running.
func prune(dir string) {
	all := journals(dir)
	for _, path := range all[min(most-1, len(all)):] {
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if lock(file) == nil {
			_ = os.Remove(path)
		}
		_ = file.Close()
	}
}

// lock locks a file until it is closed, or the process ends.
func lock(file *os.File) error {
	return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
