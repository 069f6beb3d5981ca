package instance

import "fmt"

// A GoneError reports a controller that keeps exiting on its own.
type GoneError struct {
	Times, Code int
	Said        string // the panic, or the last line that it printed
	Hint        string // a limit of this system that may be the reason
}

func (e *GoneError) Error() string {
	said := e.Said
	if said == "" {
		said = "it printed nothing"
	}
	hint := ""
	if e.Hint != "" {
		hint = "; " + e.Hint
	}
	return fmt.Sprintf("the controller exited on its own %d times, the last time with code %d: %s; start it by hand with the same arguments to see why%s",
		e.Times, e.Code, said, hint)
}
