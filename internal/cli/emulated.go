package cli

import (
	"fmt"

	"github.com/koboshi-dev/koboshi/internal/kubeversion"
)

// kubernetesUsage describes --kubernetes, which several verbs have.
func kubernetesUsage() string {
	return "older minor version to emulate, such as " + kubeversion.Minors()[0]
}

// emulated returns the minor version that the flag --kubernetes names, or "". If it is an
// older version, emulated prints a note.
func emulated(given []string, stdio Stdio) (string, error) {
	if len(given) == 0 {
		return "", nil
	}
	minor, err := kubeversion.ParseMinor(given[len(given)-1])
	if err != nil {
		return "", usageError{fmt.Errorf("--kubernetes: %w", err)}
	}
	noteEmulation(minor, stdio)
	return minor, nil
}

// noteEmulation prints what the emulation of an older version covers, and what it does not.
func noteEmulation(minor string, stdio Stdio) {
	if note := kubeversion.EmulationNote(minor); note != "" {
		_, _ = fmt.Fprintf(stdio.Err, "koboshi: %s\n", note)
	}
}
