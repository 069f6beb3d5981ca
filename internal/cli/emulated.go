package cli

import (
	"fmt"
	"os"

	"github.com/koboshi-dev/koboshi/internal/envtest"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
)

// kubernetesUsage describes --kubernetes, which several verbs have.
func kubernetesUsage() string {
	return "older minor version to emulate, such as " + kubeversion.Minors()[0]
}

// emulatedBySuite returns the minor version that the flag --kubernetes names, or else the
// variable KOBOSHI_KUBERNETES, or "".
func emulatedBySuite(given []string, stdio Stdio) (string, error) {
	if len(given) > 0 {
		return emulated("--kubernetes", given[len(given)-1], stdio)
	}
	if version := os.Getenv(envtest.KubernetesVariable); version != "" {
		return emulated(envtest.KubernetesVariable, version, stdio)
	}
	return "", nil
}

// emulated returns the minor version that a flag or a variable names. If it is an older
// version, emulated prints a note.
func emulated(source, version string, stdio Stdio) (string, error) {
	minor, err := kubeversion.ParseMinor(version)
	if err != nil {
		return "", usageError{fmt.Errorf("%s: %w", source, err)}
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
