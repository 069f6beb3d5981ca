package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/journal"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/plan"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/cli/static"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// saved reads the saved findings. It skips files that cannot be read, with a note.
func (f *checkFlags) saved(o *check.Options) ([]*report.Saved, error) {
	if info, err := os.Stat(f.findings); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("--findings: %s is not a folder; name a folder", f.findings)
	}
	saved, err := report.LoadFindings(f.findings)
	if err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			o.Notes = append(o.Notes, "skipped a saved finding: "+line)
		}
	}
	return saved, nil
}

// moveFixed moves the saved findings that no longer occur. It skips a finding that was saved with
// other flags, because such a finding concerns another controller, and a finding from another
// profile, because it may not occur in this one.
func (f *checkFlags) moveFixed(result *check.Result, saved []*report.Saved) {
	for _, s := range saved {
		if !slices.Equal(s.Subject, f.subject()) || s.Plane != "" && s.Plane != result.Profile || !fixed(result, s) {
			continue
		}
		if err := result.Report.MoveFixed(s); err != nil {
			result.Report.Notes = append(result.Report.Notes, err.Error())
		}
	}
}

// fixed reports whether a saved finding did not occur again.
func fixed(result *check.Result, s *report.Saved) bool {
	if s.Finding.Fault != nil {
		return slices.ContainsFunc(result.Recovered, func(p plan.Planned) bool {
			return p.Scenario == s.Scenario.Name && fault.Same(p.Fault, *s.Finding.Fault)
		})
	}
	again := func(found judge.Finding) bool {
		// A loop at rest that occurs in several scenarios is reported only
		// once.
		return found.ID == s.Finding.ID || found.Verdict == s.Finding.Verdict && found.Sentence == s.Finding.Sentence
	}
	tried := result.Compared
	if s.Finding.Verdict == judge.ConversionLossy {
		tried = result.Converted
	}
	if !slices.Contains(tried, s.Scenario.Name) || slices.ContainsFunc(result.Report.Findings, again) {
		return false
	}
	rest := check.Rest{Scenario: s.Finding.Scenario, Step: s.Finding.Step}
	return result.Watched[rest].Seconds() >= s.Finding.WatchedSeconds
}

// record makes the check record its progress: it saves findings as soon as they are
// confirmed, and writes a journal. With --resume, it opens the journal of an earlier check.
func (f *checkFlags) record(fs *pflag.FlagSet, o *check.Options) error {
	o.Save = func(found *judge.Finding, profile string, sc *scenario.Scenario, entries []trace.Entry) error {
		return report.KeepOne(found, f.keepOptions(&check.Result{
			Profile: profile, Scenarios: map[string]*scenario.Scenario{sc.Name: sc}, Traces: map[string][]trace.Entry{found.ID: entries},
		}))
	}
	dir := journalFolder(f.findings)
	h := journal.Header{Program: strings.TrimSpace(static.VersionLine()), Flags: f.identity(fs), Seed: o.Seed, Started: time.Now()}
	if !f.resume {
		o.Journal = journal.New(dir, h)
		return nil
	}
	var err error
	if o.Journal, o.Known, err = journal.Resume(dir, h); err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	if fs.Changed("seed") && o.Seed != o.Known.Seed {
		o.Journal.Close(false)
		return fmt.Errorf("--seed is %d, but the interrupted check has seed %d; omit --seed, or omit --resume to start again", o.Seed, o.Known.Seed)
	}
	o.Seed = o.Known.Seed
	return nil
}

// journalFolder returns the folder of the journals, which is beside the folder of the
// findings. Projects that save their findings in different folders share no journals.
func journalFolder(findings string) string {
	findings = filepath.Clean(findings)
	if findings == filepath.FromSlash(defaultFindings) {
		return filepath.Join(filepath.Dir(findings), "journal")
	}
	if path, err := filepath.Abs(findings); err == nil {
		findings = path // a path such as .. has no name to which a suffix can be added
	}
	return findings + ".journal"
}

// incidental lists the flags that do not change what is checked and which faults are
// injected.
var incidental = []string{"output", "findings", "verbose", "workers", "budget", "seed", "resume", "max-inconclusive", "stop-at-first", "plan", "inputs", "strict", "update-budget"}

// identity returns the flags and the command that identify a check. It contains no value of
// --env, because it is written to a file, and a value may be secret.
func (f *checkFlags) identity(fs *pflag.FlagSet) (args []string) {
	fs.Visit(func(flag *pflag.Flag) {
		if slices.Contains(incidental, flag.Name) {
			return
		}
		for _, value := range valuesOf(flag) {
			if flag.Name == "env" {
				value, _, _ = strings.Cut(value, "=")
			}
			args = append(args, "--"+flag.Name+"="+value)
		}
	})
	if len(f.project.Command) > 0 {
		args = append(append(args, "--"), f.project.Command...)
	}
	return args
}

// identify completes the journal with hashes of the controller and of the scenarios. It
// returns an error if the journal of an earlier check has other hashes.
func identify(o *check.Options) error {
	if o.Journal == nil {
		return nil
	}
	subject, err := digest(o.Subject, o.Profile, o.Programs)
	if err != nil {
		return err
	}
	// The manager's path contains a temporary folder, which differs in each run.
	subject = strings.ReplaceAll(subject, o.Dir, "")
	h := sha256.New()
	_, _ = io.WriteString(h, subject)
	for _, arg := range o.Subject.Command {
		hashFile(h, arg)
	}
	for _, program := range o.Programs {
		hashFile(h, program.Path)
	}
	scenarios, err := digest(o.Scenarios)
	if err != nil {
		return err
	}
	is := o.Journal.Header()
	is.Subject = hex.EncodeToString(h.Sum(nil))
	is.Scenarios = hashed(scenarios)
	if o.Known == nil {
		o.Journal.Identify(is.Subject, is.Scenarios)
		return nil
	}
	if differs := o.Known.Differs(is); differs != "" {
		return fmt.Errorf("--resume: the interrupted check was made with %s; omit --resume to start again", differs)
	}
	return nil
}

// digest returns a text that is equal for equal values.
func digest(values ...any) (string, error) {
	data, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("identifying the check: %w", err)
	}
	return string(data), nil
}

func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// hashFile adds the content of a file to a hash. An argument that names no file adds nothing.
func hashFile(h io.Writer, path string) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return
	}
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	_, _ = io.Copy(h, file) // a file that cannot be read is not started either
}

// patience is the time within which further signals are treated as part of the first one:
// timeout(1) sends its signal to the process and to the process group.
const patience = 2 * time.Second

// secondSignal keeps signals after the first one from ending this process, because the
// report of an interrupted check is still to be written. hurry is closed when the user
// sends another signal after a while, so that the planes are killed rather than stopped.
func secondSignal() (hurry <-chan struct{}, stop func()) {
	signals := make(chan os.Signal, 4)
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		all = append(all, syscall.SIGHUP)
	}
	signal.Notify(signals, all...)
	again, done := make(chan struct{}), make(chan struct{})
	go func() {
		var first time.Time
		var once sync.Once
		for {
			select {
			case <-done:
				return
			case <-signals:
			}
			if first.IsZero() {
				first = time.Now()
			} else if time.Since(first) > patience {
				once.Do(func() { close(again) })
			}
		}
	}()
	return again, func() { signal.Stop(signals); close(done) }
}
