package judge

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/textwidth"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// longestSentence is the number of columns in three lines of a terminal.
const longestSentence = 236

// finding makes a finding. outcome describes the effect of the fault as a sentence without
// its full stop.
func (in *input) finding(v Verdict, step, outcome string, differences []state.Difference) Finding {
	f := Finding{
		Verdict: v, Scenario: in.ref.Scenario.Name, Step: step, Fault: in.run.Fault,
		Sentence: sentence(in.run.Fault, in.failed(), outcome), Differences: differences, Failed: in.failed(),
		LastAction: in.lastAction(step), Seed: in.run.Seed, Reproduced: 1, Attempts: 1,
	}
	f.ID = f.identity(what(differences))
	return f
}

// failed returns the number of requests that a burst of errors answered, if the burst ended early
// because the state was already wrong when the step came to rest. Otherwise, it returns 0.
func (in *input) failed() int {
	f := in.run.Fault
	if f == nil || f.Kind != fault.ErrorBurst {
		return 0
	}
	n := 0
	for _, e := range in.run.Entries {
		if e.Call != nil && e.Call.Injected {
			n++
		}
	}
	if n >= fault.Burst {
		return 0
	}
	return n
}

func sentence(f *fault.Fault, failed int, outcome string) string {
	text := outcome
	if f != nil {
		text = f.Failing(failed) + ": " + outcome
	}
	return condense(text, longestSentence)
}

// These constants limit the width of a name in a sentence that is too long.
const (
	longName, shortName = 48, 16
)

// condense shortens a sentence that is wider than most columns. It removes the middle of long names,
// because names differ at their beginning and at their end. If that is not enough, it cuts the
// sentence after a word.
func condense(text string, most int) string {
	if textwidth.Width(text) <= most {
		return text
	}
	words := strings.Split(text, " ")
	for limit := longName; limit >= shortName; limit -= 8 {
		for i := range words {
			words[i] = textwidth.Elide(words[i], limit, "…")
		}
		if text = strings.Join(words, " "); textwidth.Width(text) <= most {
			return text
		}
	}
	for len(words) > 1 && textwidth.Width(strings.Join(words, " ")+" …") > most {
		words = words[:len(words)-1]
	}
	return strings.Join(words, " ") + " …"
}

func shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return strings.TrimSpace(string(runes[:most-1])) + "…"
	}
	return text
}

// what lists the objects that differ. The list omits the objects' fields, because chance may decide
// which fields were written before the run was stopped.
func what(differences []state.Difference) string {
	var objects []string
	for _, d := range differences {
		objects = append(objects, d.Object)
	}
	slices.Sort(objects)
	return strings.Join(slices.Compact(objects), "\n")
}

// identity returns the same string for the same finding in another run.
func (f Finding) identity(what string) string {
	point, err := json.Marshal(f.Fault)
	if err != nil {
		point = nil // this cannot happen: a fault is plain data
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{string(f.Verdict), f.Scenario, f.Step, string(point), what}, "\x00")))
	return hex.EncodeToString(sum[:6])
}

// Same reports whether two runs of the same fault show the same problem: the same verdict
// at the same step. Other fields may differ.
func (f Finding) Same(other Finding) bool {
	return f.Verdict == other.Verdict && f.Scenario == other.Scenario && f.Step == other.Step
}

// AlsoWithout reports whether runs that strayed from the reference without a fault show the whole
// finding. The runs show it if, taken together, they differ from the reference in every place that
// the finding names. If the finding names no place, one of the runs must have strayed after the
// same step.
func (f Finding) AlsoWithout(runs []evidence.Strayed) bool {
	if len(f.Differences) == 0 {
		return slices.ContainsFunc(runs, func(s evidence.Strayed) bool { return s.Step == f.Step })
	}
	for _, d := range f.Differences {
		if !slices.ContainsFunc(runs, func(s evidence.Strayed) bool {
			return slices.ContainsFunc(s.Differences, func(other state.Difference) bool { return samePlace(d, other) })
		}) {
			return false
		}
	}
	return true
}

// samePlace reports whether two differences concern the same object as a whole, or the same
// field.
func samePlace(a, b state.Difference) bool {
	return a.Object == b.Object && (a.Path == b.Path || below(a.Path, b.Path) || below(b.Path, a.Path))
}

// outcome describes differences to a user by naming the most telling one.
func outcome(differences []state.Difference, deleting bool) string {
	if len(differences) == 0 {
		return "the end state differs from the end state without a fault"
	}
	first := mostTelling(differences)
	text := ""
	switch {
	case first.Path == "" && first.Got == "":
		text = first.Object + " is missing"
	case first.Path == "" && deleting:
		text = first.Object + " is left over"
	case first.Path == "":
		text = first.Object + " is an unexpected extra object"
	case first.Got == "":
		text = fmt.Sprintf("%s has no %s", first.Object, first.Path)
	case first.Want == "":
		text = fmt.Sprintf("%s has %s %s, which it should not have", first.Object, first.Path, shorten(first.Got, 24))
	default:
		text = fmt.Sprintf("%s has %s %s instead of %s", first.Object, first.Path, shorten(first.Got, 24), shorten(first.Want, 24))
	}
	if more := len(differences) - 1; more == 1 {
		text += ", and one more difference"
	} else if more > 1 {
		text += fmt.Sprintf(", and %d more differences", more)
	}
	return text
}

// mostTelling prefers a missing object, then a superfluous one, then a field of a spec. An
// object that a user does not care about comes last.
func mostTelling(differences []state.Difference) state.Difference {
	rank := func(d state.Difference) int {
		switch {
		case d.Path == "" && d.Got == "":
			return 0
		case d.Path == "":
			return 1
		case strings.HasPrefix(d.Path, "status") || strings.HasPrefix(d.Path, "metadata"):
			return 3
		}
		return 2
	}
	return slices.MinFunc(differences, func(a, b state.Difference) int {
		return cmp.Or(minor(a.Object)-minor(b.Object), rank(a)-rank(b))
	})
}

// lockName matches the names of objects with which a leader is elected.
var lockName = regexp.MustCompile(`(?i)leader|lock$`)

// minor returns 1 for an object that a user does not care about, such as an Event or the lock
// of a leader, and 0 for all others.
func minor(object string) int {
	kind, name, _ := strings.Cut(object, " ")
	switch kind {
	case "Event", "Event.events.k8s.io", "Lease.coordination.k8s.io", "LeaseCandidate.coordination.k8s.io":
		return 1
	case "ConfigMap", "Endpoints":
		if lockName.MatchString(name) {
			return 1
		}
	}
	return 0
}

// lastAction describes the last write of the controller that changed something before the
// end of a step.
func (in *input) lastAction(name string) string {
	until := in.run.Took
	for i, s := range in.run.Steps {
		if s.Name == name && i+1 < len(in.run.Steps) {
			until = in.run.Steps[i+1].BeganAt
		}
	}
	last := ""
	for i := range in.run.Entries {
		e := &in.run.Entries[i]
		if !isWork(e) || !succeeded(e) || until > 0 && e.At > until {
			continue
		}
		if in.changed(e) {
			last = in.request(e.Call)
			if e.Call.Lost {
				last += " (the answer was lost)"
			}
		}
	}
	return last
}

// changed reports whether a write of the controller was committed. Deletions always count,
// because their answers have no version.
func (in *input) changed(e *trace.Entry) bool {
	if strings.HasPrefix(e.Call.Verb, "delete") {
		return true
	}
	for _, author := range in.authors {
		if author == e {
			return true
		}
	}
	return false
}

// request describes a request with canonical names: "PATCH deployments.apps
// default/web".
func (in *input) request(c *trace.Call) string {
	return describe(in.ref.Mask, c)
}

func describe(m *state.Mask, c *trace.Call) string {
	point := fault.PointOf(c, "", m.Name, nil)
	return strings.TrimSpace(request.Method(c.Verb) + " " + point.Resource + " " + point.Object)
}
