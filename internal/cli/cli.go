// Package cli implements the command line. It has one file per verb; each file turns the
// verb's flags into one options struct and makes one library call.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1 // something failed
	exitUsage = 2 // the command line was wrong; the message says what to do instead
)

// Stdio holds a command's standard streams.
type Stdio struct {
	In  io.Reader
	Out io.Writer
	Err *os.File // not os.Stderr, because libraries write text there that is not meant for the user
}

// A usageError reports a mistake by the user in one line that ends with what to do instead.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// Run executes the command line and returns the process's exit code.
func Run(ctx context.Context, args []string, stdio Stdio) int {
	root := newRoot(stdio)
	root.SetArgs(args)
	root.SetIn(stdio.In)
	root.SetOut(stdio.Out)
	root.SetErr(stdio.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var result exitStatus
	if errors.As(err, &result) {
		return int(result)
	}
	_, _ = fmt.Fprintf(stdio.Err, "koboshi: %v\n", err)
	if errors.As(err, &usageError{}) {
		return exitUsage
	}
	return exitError
}

func newRoot(stdio Stdio) *cobra.Command {
	root := &cobra.Command{
		Use:   "koboshi",
		Short: "Real Kubernetes in one process, to run and test custom controllers",
		// For an unknown verb, the error suggests the most similar one.
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{unknownVerb(cmd, args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
	})
	// Upstream's packages register --version for every program that links them.
	if foreign := pflag.CommandLine.Lookup("version"); foreign != nil {
		foreign.Hidden = true
	}
	root.AddCommand(
		newUp(stdio), newDev(stdio), newInspect(stdio), newMCP(stdio), newCheck(stdio), newTest(stdio),
		newInit(), newCreate(), newEdit(), newDelete(), newRename(), newGenerate(stdio), newShip(stdio), newDeploy(stdio),
		newEnvtest(stdio), newKubectl(), newVersion(), newManual(),
	)
	return root
}

func unknownVerb(cmd *cobra.Command, verb string) error {
	if near := cmd.SuggestionsFor(verb); len(near) > 0 {
		return fmt.Errorf("unknown command %q; did you mean %q?", verb, near[0])
	}
	return fmt.Errorf("unknown command %q; see koboshi --help", verb)
}

// noArgs rejects positional arguments.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("%s takes no arguments, but got %q; see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())}
	}
	return nil
}
