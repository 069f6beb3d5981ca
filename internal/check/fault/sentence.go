package fault

import (
	"fmt"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/request"
)

// String describes the fault for human readers as the beginning of a sentence: "killed
// after PATCH deployments.apps default/viewer-a (the answer was lost)". It names the step
// only if the fault is not at a request.
func (f Fault) String() string {
	if d, ok := f.Kind.find(); ok {
		return d.sentence(f)
	}
	return fmt.Sprintf("%s at %s", f.Kind, f.Point)
}

// Failing is like String, but describes only those requests of a burst of errors that failed. If
// failed is 0, the burst was complete.
func (f Fault) Failing(failed int) string {
	switch {
	case f.Kind != ErrorBurst || failed <= 0 || failed >= Burst:
		return f.String()
	case failed == 1:
		return "500 on " + f.Point.request()
	}
	return fmt.Sprintf("500 on %s, %d times in a row", f.Point.request(), failed)
}

// atRequest returns a function that describes a fault at one request.
func atRequest(form string) func(Fault) string {
	return func(f Fault) string { return fmt.Sprintf(form, f.Point.request()) }
}

// String describes the point and its step: "PATCH deployments.apps default/a in step
// scale".
func (p Point) String() string {
	switch {
	case p.Verb != "" && p.Step == "":
		return p.request() + " at startup"
	case p.Verb != "":
		return p.request() + " in step " + p.Step
	case p.Resource != "":
		return p.Type() + " at the beginning of step " + p.Step
	}
	return atRest(p.Step)
}

// request describes the request without its step: "the 2nd POST pods default/a-*".
func (p Point) request() string {
	s := strings.TrimSpace(request.Method(p.Verb) + " " + p.Resource + " " + p.Object)
	if p.Occurrence > 1 {
		return fmt.Sprintf("the %s %s", ordinal(p.Occurrence), s)
	}
	return s
}

// begin describes where a delay begins: with a request, or with a step.
func (p Point) begin() string {
	if p.Verb != "" {
		return p.request()
	}
	if p.Step == "" {
		return "startup"
	}
	return "step " + p.Step
}

// span describes the steps in which states were lost.
func (f Fault) span() string {
	if f.Until == "" || f.Until == f.Point.Step {
		return "in step " + f.Point.Step
	}
	return fmt.Sprintf("from step %s to step %s", f.Point.Step, f.Until)
}

func atRest(step string) string {
	if step == "" {
		return "at rest"
	}
	return "at rest after step " + step
}

func ago(behind int) string {
	switch behind {
	case 0:
		return "an earlier moment"
	case 1:
		return "1 write ago"
	}
	return fmt.Sprintf("%d writes ago", behind)
}

// target turns "Kind.group/namespace/name" into "Kind.group namespace/name".
func target(s string) string {
	kind, name, _ := strings.Cut(s, "/")
	return kind + " " + strings.TrimPrefix(name, "/")
}

func ordinal(n int) string {
	suffix := "th"
	if n%100/10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
