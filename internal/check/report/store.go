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

	"al.essio.dev/pkg/shellescape"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// SavedVersion is the version of the format of saved findings.
const SavedVersion = 1

// Saved is the content of the file of a finding. It holds everything that a replay needs.
type Saved struct {
	// Version is SavedVersion; SaveFinding sets it.
	Version int           `json:"version"`
	Finding judge.Finding `json:"finding"`
	// Unconfirmed marks a suspicion that was not confirmed.
	Unconfirmed bool `json:"unconfirmed,omitempty"`
	// Scenario contains the objects themselves instead of the names of files, so that the file of
	// the finding can be moved. In the file, placeholders stand for the values of Secrets;
	// LoadFinding replaces them with fresh values.
	Scenario scenario.Scenario `json:"scenario"`
	// Subject holds the flags and the command for koboshi check.
	Subject []string `json:"subject"`
	// Plane is the profile in which the finding occurred, even if koboshi check chose it.
	Plane string `json:"plane"`
	// Trace is stored in the same folder as ID.trace.jsonl. If that file is missing, Trace
	// is nil; a replay does not need it.
	Trace []trace.Entry `json:"-"`
}

const (
	findingSuffix = ".json"
	traceSuffix   = ".trace.jsonl"
)

// SaveFinding writes a finding to a file in the folder and returns its path. It creates
// the folder if necessary, and replaces a finding with the same ID.
func SaveFinding(dir string, s Saved) (path string, err error) {
	if s.Finding.ID == "" {
		return "", errors.New("saving a finding: it has no ID")
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("saving finding %s: %w", inline(s.Finding.ID), err)
	}
	concealed, err := s.Scenario.Conceal()
	if err != nil {
		return "", fmt.Errorf("saving finding %s: %w", inline(s.Finding.ID), err)
	}
	s.Version, s.Scenario = SavedVersion, *concealed
	path = filepath.Join(dir, findingName(s.Finding))
	s.Finding.File, s.Finding.Replay = filepath.ToSlash(path), replayCommand(path)
	// Save the trace first, so that the trace exists as soon as the file of the finding exists.
	if err := saveTrace(tracePath(dir, s.Finding), s); err != nil {
		return "", err
	}
	data, err := encoded(s)
	if err != nil {
		return "", fmt.Errorf("saving finding %s: %w", inline(s.Finding.ID), err)
	}
	return path, writeWhole(path, data)
}

// findingName returns the name of the file of a finding, such as
// "DIVERGED-life-create-1a2b3c4d5e6f.json".
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

// slug converts text to a part of a file name: lower-case letters, digits and dashes. If
// most is 0, slug does not shorten it.
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
		err := os.Remove(path) // a trace of an earlier run would be misleading
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("saving finding %s: %w", inline(s.Finding.ID), err)
		}
		return nil
	}
	var b bytes.Buffer
	header := trace.Header{Subject: strings.Join(s.Subject, " ")}
	if err := trace.Write(&b, header, s.Trace); err != nil {
		return fmt.Errorf("saving the trace of the finding %s: %w", inline(s.Finding.ID), err)
	}
	return writeWhole(path, b.Bytes())
}

// writeWhole replaces a file atomically: a reader sees the old or the new content,
// even after a crash.
func writeWhole(path string, data []byte) error {
	hidden := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d", filepath.Base(path), os.Getpid()))
	file, err := os.OpenFile(hidden, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
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

// KeepOptions holds the arguments of Keep.
type KeepOptions struct {
	// Dir is the folder of the findings.
	Dir string
	// Subject and Plane are copied to Saved.
	Subject []string
	Plane   string
	// Scenarios holds the scenarios that were run, keyed by name. Traces holds the traces
	// of the findings, keyed by ID.
	Scenarios map[string]*scenario.Scenario
	Traces    map[string][]trace.Entry
}

// Keep saves each finding as a file, and records that file and the replay command in the
// report. It also saves suspicions that were not confirmed, because the next check tries
// them first. It skips findings whose scenario was not run, and those that a replay cannot show.
func (r *Report) Keep(o KeepOptions) error {
	var all []*judge.Finding
	for i := range r.Findings {
		all = append(all, &r.Findings[i])
	}
	for _, run := range r.Inconclusive {
		if run.Suspicion != nil {
			all = append(all, run.Suspicion)
		}
	}
	for i, finding := range all {
		sc := o.Scenarios[finding.Scenario]
		if sc == nil || finding.Fault == nil && finding.Attempts == 0 || finding.Verdict.NeedsCheck() {
			continue
		}
		path, err := SaveFinding(o.Dir, Saved{
			Finding: *finding, Unconfirmed: i >= len(r.Findings),
			Scenario: *sc, Subject: o.Subject, Plane: o.Plane, Trace: o.Traces[finding.ID],
		})
		if err != nil {
			return err
		}
		finding.File, finding.Replay = filepath.ToSlash(path), replayCommand(path)
	}
	return nil
}

// Replayed sets the replayed file in the report and in its findings.
func (r *Report) Replayed(file string) {
	r.Command = replayCommand(file)
	for i := range r.Findings {
		r.Findings[i].File, r.Findings[i].Replay = filepath.ToSlash(file), replayCommand(file)
	}
}

// replayCommand returns the command that replays a saved finding.
func replayCommand(path string) string {
	return "koboshi check replay " + shellescape.Quote(filepath.ToSlash(path))
}

// Faults returns the faults of findings, keyed by the name of their scenario.
func Faults(findings []*Saved) map[string][]fault.Fault {
	faults := map[string][]fault.Fault{}
	for _, s := range findings {
		if s.Finding.Fault != nil {
			faults[s.Scenario.Name] = append(faults[s.Scenario.Name], *s.Finding.Fault)
		}
	}
	return faults
}

// SavedTraces returns the traces of the findings whose files can be read, keyed by the ID
// of the finding.
func (r *Report) SavedTraces() map[string][]trace.Entry {
	traces := map[string][]trace.Entry{}
	for _, f := range r.Findings {
		if saved, err := LoadFinding(f.File); err == nil {
			traces[f.ID] = saved.Trace
		}
	}
	return traces
}

// LoadFinding reads the file of a finding, and its trace if there is one. If only the
// trace is damaged, it returns both the finding and the error.
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
		return nil, fmt.Errorf("%s is damaged: %w; delete the file, or restore it from a backup", path, err)
	}
	if s.Finding.ID == "" || s.Finding.Verdict == "" || s.Scenario.Name == "" {
		return nil, fmt.Errorf("%s is damaged: the id, the verdict or the scenario is missing; delete the file, or restore it from a backup", path)
	}
	revealed, err := s.Scenario.Reveal()
	if err == nil {
		err = revealed.Validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not valid: %w; delete the file, or restore it from a backup", path, err)
	}
	s.Scenario = *revealed
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
		return nil, fmt.Errorf("%s is damaged: %w; delete the file (a replay does not need it)", path, err)
	}
	return entries, nil
}

// IsFinding reports whether a file with this name holds a finding, not a trace or a part of a file.
func IsFinding(name string) bool {
	return !strings.HasPrefix(name, ".") && filepath.Ext(name) == findingSuffix
}

// LoadFindings reads all findings in a folder, the most serious first. A folder that does not exist
// is treated as empty. The error names the files that cannot be read; the other findings are still
// returned.
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
		if file.IsDir() || !IsFinding(file.Name()) {
			continue
		}
		s, err := LoadFinding(filepath.Join(dir, file.Name()))
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
