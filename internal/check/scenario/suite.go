package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

// driven is the beginning of the name of a scenario that Driven makes, and suiteStep is the name of its
// step.
const (
	driven    = "driver"
	suiteStep = "suite"
)

// Driven returns a scenario whose only step is a test suite. The command is one line for the shell,
// and runs in the folder dir. The name depends on the command, so that the saved findings of two suites
// are not mistaken for each other.
func Driven(command, dir string, timeout time.Duration) *Scenario {
	digest := sha256.Sum256([]byte(command))
	return &Scenario{
		APIVersion: APIVersion, Kind: Kind, Name: driven + "-" + hex.EncodeToString(digest[:3]), Dir: dir,
		Description: "The test suite of the project.",
		Steps:       []Step{{Name: suiteStep, Run: []string{"sh", "-c", command}, Suite: true, Timeout: Duration(timeout)}},
	}
}

// HasSuite reports whether a step of the scenario is a test suite.
func (s *Scenario) HasSuite() bool {
	return slices.ContainsFunc(s.Steps, func(st Step) bool { return st.Suite })
}
