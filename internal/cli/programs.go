package cli

import (
	"fmt"
	"runtime"

	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/programs"
)

// canRunPrograms returns an error if the profile or the operating system cannot run programs
// in Pods. The parameter advice explains how to get a scheduler.
func canRunPrograms(profile controllers.Profile, advice string) error {
	switch {
	case runtime.GOOS != "linux":
		return fmt.Errorf("programs in Pods need Linux namespaces, which %s does not have; omit --run, or use a Linux virtual machine", runtime.GOOS)
	case !profile.Has(controllers.Scheduler):
		return fmt.Errorf("programs in Pods need a scheduler, but profile %s has none; %s", profile.Name, advice)
	}
	return nil
}

// parsePrograms parses values of the form IMAGE=PATH. The parameter what names the flag or the
// setting that contains the values.
func parsePrograms(what string, values []string) (set programs.Set, err error) {
	for _, value := range values {
		program, err := programs.Parse(value)
		if err == nil {
			set, err = set.Add(program)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	return set, nil
}
