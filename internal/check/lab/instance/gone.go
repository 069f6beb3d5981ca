package instance

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/output"
)

// A GoneError reports a controller that keeps exiting on its own.
type GoneError struct {
	Times, Code int
	Said        string // the panic, or the last line that it printed
	Hint        string // a limit of this system that may be the reason
	// Printed is the end of the output of the last instance.
	Printed string
}

func (e *GoneError) Error() string {
	text := fmt.Sprintf("the controller exited on its own %d times, the last time with code %d: %s", e.Times, e.Code, cmp.Or(e.Said, "it printed nothing"))
	if lacks := output.Lacks(e.Printed); lacks != "" {
		text += "; " + lacks
	} else {
		text += "; start it by hand with the same arguments to see why"
	}
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	return text
}

// mostShown is the number of lines of output that LastLines returns.
const mostShown = 5

// LastLines returns the last lines of the output, or "" if Said quotes all of them.
func (e *GoneError) LastLines() string {
	lines := output.LastLines(e.Printed, mostShown)
	if !strings.Contains(lines, "\n") {
		return ""
	}
	return lines
}
