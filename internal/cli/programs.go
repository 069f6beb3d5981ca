package cli

import (
	"fmt"
	"runtime"

	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/programs"
)

// canRunPrograms returns an error if the profile or the operating system cannot run programs
// in Pods. what names the flags that ask for programs.
func canRunPrograms(what string, profile controllers.Profile) error {
	switch {
	case !profile.Has(controllers.Scheduler):
		return fmt.Errorf("%s need a scheduler, but profile %s has none; add --controllers=scheduler, or choose another --profile", what, profile.Name)
	case runtime.GOOS != "linux":
		return fmt.Errorf("%s need Linux namespaces, which %s does not have; omit both flags, or use a Linux virtual machine", what, runtime.GOOS)
	}
	return nil
}

// parsePrograms parses values of the form IMAGE=PATH. what names the flag or the setting that
// has them.
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
