package kubeversion

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// emulated is the number of older minor versions that upstream's components can emulate.
const emulated = 3

// Minors lists the minor versions that a plane can have, such as "1.34", the oldest first.
// The last one is the minor version of Version.
func Minors() (minors []string) {
	major, minor := parts(Version)
	for m := minor - emulated; m <= minor; m++ {
		minors = append(minors, major+"."+strconv.Itoa(m))
	}
	return minors
}

// ParseMinor reads a minor version, such as 1.34 or v1.34, and returns it without the v.
func ParseMinor(version string) (string, error) {
	minors := Minors()
	bare := strings.TrimPrefix(version, "v")
	for _, m := range minors {
		if bare == m {
			return m, nil
		}
		if strings.HasPrefix(bare, m+".") {
			return "", fmt.Errorf("%q is a patch version, and only minor versions can be emulated; write %s", version, m)
		}
	}
	return "", fmt.Errorf("version %q cannot be emulated; choose one of: %s", version, strings.Join(minors, ", "))
}

// EmulationFlag returns the flag with which upstream's components emulate a minor version.
func EmulationFlag(minor string) string { return "--emulated-version=kube=" + minor }

// Emulating adds EmulationFlag to the flags of a component, unless minor is empty or the
// flags already choose a version.
func Emulating(flags []string, minor string) ([]string, error) {
	if minor == "" || slices.ContainsFunc(flags, func(flag string) bool { return strings.HasPrefix(flag, "--emulated-version") }) {
		return flags, nil
	}
	minor, err := ParseMinor(minor)
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(flags), EmulationFlag(minor)), nil
}

// EmulationNote describes what the emulation of a minor version covers and what it does
// not. It is empty for the minor version of Version, which needs no emulation.
func EmulationNote(minor string) string {
	minors := Minors()
	if minor == "" || minor == minors[len(minors)-1] {
		return ""
	}
	return fmt.Sprintf(`Kubernetes %s emulates %s: its APIs and feature gates.
         Not emulated: bugs and other behaviour of %s, code and APIs that were
         removed since, its kubectl and its kubelet`, Version, minor, minor)
}

// parts splits a version into the major version and the minor version.
func parts(version string) (major string, minor int) {
	major, rest, _ := strings.Cut(version, ".")
	text, _, _ := strings.Cut(rest, ".")
	minor, _ = strconv.Atoi(text) // a test checks Version
	return major, minor
}
