package cli

import (
	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/controlplane"
)

// parseUp returns the options that koboshi up would start a plane with.
func parseUp(args ...string) (controlplane.Options, error) {
	var f upFlags
	fs := pflag.NewFlagSet("up", pflag.ContinueOnError)
	f.register(fs)
	if err := fs.Parse(args); err != nil {
		return controlplane.Options{}, err
	}
	return f.options(fs.Changed)
}
