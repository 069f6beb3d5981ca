package judge

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// mostOutput is the number of lines of output that a finding keeps.
const mostOutput = 24

// mostColumns is the length of these lines.
const mostColumns = 400

// crashed finds panics, and instances that exit without a reason.
func crashed(in *input) []Finding {
	if found := panics(in); found != nil {
		return found
	}
	if in.ref.Exits || in.run.Fault != nil && in.run.Fault.Kind == fault.LoseLease {
		return nil // the controller also exits without a fault, or is supposed to exit without its Lease
	}
	return exited(in)
}

func panics(in *input) []Finding {
	for _, text := range outputs(in.run) {
		found := output.FindPanic(text)
		if found.Line == "" {
			continue
		}
		sentence := "the controller panics: " + shorten(telling(found.Line), 120)
		if found.Frame != "" {
			sentence += ", in " + found.Frame
		}
		f := in.finding(Crashed, in.faultyStep(), sentence, nil)
		f.Detail, f.Frame = excerpt(found.Text), found.Frame
		return []Finding{f}
	}
	return nil
}

// logged matches the beginning of a panic inside a log entry.
var logged = regexp.MustCompile(`Observed a panic|panic: .*\[recovered\]|http: panic serving `)

// telling removes the part of a log entry before the panic, such as the time.
func telling(line string) string {
	if at := logged.FindStringIndex(line); at != nil {
		line = line[at[0]:]
	}
	return strings.TrimSpace(line)
}

// outputs returns the texts in which a panic would appear.
func outputs(run *evidence.Run) []string {
	var texts []string
	for _, e := range exits(run) {
		texts = append(texts, e.Process.Output)
	}
	return append(texts, run.Panic, run.Logs)
}

// excerpt returns the first lines of a text, and the beginning of long ones: a log in JSON has the
// whole stack in one line.
func excerpt(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = slices.Clone(lines[:min(len(lines), mostOutput)])
	for i := range lines {
		lines[i] = shorten(lines[i], mostColumns)
	}
	return strings.Join(lines, "\n")
}

// exits returns the exits of instances that were not killed.
func exits(run *evidence.Run) []trace.Entry {
	var found []trace.Entry
	for _, e := range run.Entries {
		if e.Process != nil && e.Process.What == "exited" {
			found = append(found, e)
		}
	}
	return found
}

// exited finds exits that no API error explains. A controller may exit when a request
// fails, since the kubelet restarts it, but it must not exit at every start or without a
// reason.
func exited(in *input) []Finding {
	var unexplained, genuine int
	var last trace.Entry
	for _, e := range exits(in.run) {
		if e.Process.ExitCode == 0 || output.Shortage(e.Process.Output) != "" {
			continue
		}
		switch in.reason(e) {
		case injected:
			continue
		case refused:
			genuine++
		case none:
			unexplained++
		}
		last = e
	}
	if unexplained == 0 && genuine < 2 {
		return nil
	}
	times := "once"
	if n := unexplained + genuine; n > 1 {
		times = fmt.Sprintf("%d times", n)
	}
	f := in.finding(Crashed, in.faultyStep(), fmt.Sprintf("the controller exits %s, with code %d: %s", times, last.Process.ExitCode,
		cmp.Or(shorten(output.Reason(last.Process.Output), 100), "it printed nothing")), nil)
	f.Detail = output.LastLines(last.Process.Output, mostOutput)
	return []Finding{f}
}

// These are the possible reasons for an exit, the strongest last.
const (
	none     = iota // nothing explains it
	refused         // the API refused a request, but not because of the fault
	injected        // the fault made a request fail, or ended a watch
)

// lasted returns when the fault began and ended, at the latest at the given time. Before its beginning,
// began is negative.
func (in *input) lasted(latest time.Duration) (began, ended time.Duration) {
	began, ended = -1, latest
	for _, e := range in.run.Entries {
		switch {
		case e.Fault != nil && e.Fault.What == "applied":
			began = e.At
		case e.Fault != nil && e.Fault.What == "ended" && began >= 0:
			ended = min(ended, e.At)
		}
	}
	return began, ended
}

// isCutOff reports whether an instance that exited could not reach the API server for a part of its
// life. Connections that are refused leave no trace.
func (in *input) isCutOff(exit trace.Entry) bool {
	if in.run.Fault == nil || !in.run.Fault.Kind.CutsOff() {
		return false
	}
	var started time.Duration
	for _, e := range in.run.Entries {
		if e.Process != nil && e.Process.What == "started" && e.Instance == exit.Instance {
			started = e.At
		}
	}
	began, ended := in.lasted(exit.At)
	return began >= 0 && started <= ended && exit.At >= began
}

// isUnreviewed reports whether a request failed while the fault kept the API server from reaching the
// controller's webhooks. The API server itself then makes the error.
func (in *input) isUnreviewed(e trace.Entry) bool {
	if in.run.Fault == nil || in.run.Fault.Kind != fault.WebhookDown || e.Call.Code < 500 {
		return false
	}
	began, ended := in.lasted(e.At)
	return began >= 0 && e.At >= began && e.At-e.Call.Took <= ended
}

// reason returns the strongest reason during the lifetime of the instance that exited.
func (in *input) reason(exit trace.Entry) int {
	if in.isCutOff(exit) {
		return injected
	}
	why := none
	for _, e := range in.run.Entries {
		if e.Instance != exit.Instance || e.At > exit.At {
			continue
		}
		switch {
		case e.Call != nil && (e.Call.Injected || e.Call.Lost || e.Call.Code == 0 || in.isUnreviewed(e)),
			e.Watch != nil && (e.Watch.Injected || e.Watch.Type == "ERROR"):
			return injected
		case e.Call != nil && e.Call.Code >= 400 && e.Call.Verb != "get":
			why = refused
		}
	}
	return why
}
