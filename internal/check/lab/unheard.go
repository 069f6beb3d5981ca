package lab

import (
	"cmp"
	"fmt"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/lab/instance"
	"github.com/koboshi-dev/koboshi/internal/check/output"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
)

// An UnheardError reports a controller that runs, but sends no request to the control plane.
type UnheardError struct {
	Name   string
	Within time.Duration
	Said   string // the last line that it printed
	Hint   string // a limit of this system that may be the reason
}

func (e *UnheardError) Error() string {
	text := fmt.Sprintf("no request reached the control plane from %s within %s", cmp.Or(e.Name, "the controller"), e.Within.Round(time.Second))
	if e.Said != "" {
		text += fmt.Sprintf(", whose last line of output is %q", e.Said)
	}
	if lacks := output.Lacks(e.Said); lacks != "" {
		text += "; " + lacks
	}
	text += "; the program must find the cluster through KUBECONFIG, ~/.kube/config or in-cluster configuration"
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// silent reports whether all instances run, and have sent no request so far.
func silent(a *instance.Activity) bool {
	return !a.Starting && a.Exits == 0 && a.Instances > 0 && a.Unheard == a.Instances
}

// unheard returns an UnheardError if the controller has sent no request in the first step of a
// learning run. A scenario with external endpoints may test a program that uses only these
// endpoints.
func (r *run) unheard(a *instance.Activity) error {
	if r.lesson != nil || r.current != Started || len(r.scenario.Endpoints) > 0 || !silent(a) {
		return nil
	}
	return &UnheardError{
		Name: r.lab.config.Subject.Name, Within: time.Since(a.Begun), Hint: r.lab.withoutView(),
		Said: output.LastLine(scrub.Known.Text(r.output.String())),
	}
}
