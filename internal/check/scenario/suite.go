package scenario

import (
	"slices"
	"time"
)

// These are the names of the scenario and of the step that Driven makes.
const (
	DrivenName = "driver"
	suiteStep  = "suite"
)

// Driven returns a scenario whose only step is a test suite. The command is one line for the shell,
// and runs in the folder dir.
func Driven(command, dir string, timeout time.Duration) *Scenario {
	return &Scenario{
		APIVersion: APIVersion, Kind: Kind, Name: DrivenName, Dir: dir,
		Description: "The test suite of the project.",
		Steps:       []Step{{Name: suiteStep, Run: []string{"sh", "-c", command}, Suite: true, Timeout: Duration(timeout)}},
	}
}

// HasSuite reports whether a step of the scenario is a test suite.
func (s *Scenario) HasSuite() bool {
	return slices.ContainsFunc(s.Steps, func(st Step) bool { return st.Suite })
}
