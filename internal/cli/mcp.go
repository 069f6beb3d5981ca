package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/inspect/tools"
)

func newMCP(stdio Stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp SOURCE",
		Short: "Let a coding agent inspect a session",
		Long: `Let a coding agent inspect a session: answer its calls on standard input and output,
with the Model Context Protocol. Every verb of koboshi inspect is a tool. The tools
only read, and never show the values of Secrets.

SOURCE is a trace, a finding of koboshi check, or a project in which koboshi dev is
running; see koboshi inspect --help.`,
		Example: "  koboshi mcp .\n  koboshi mcp .koboshi/findings/HOT-LOOP-life-1f2e3d.json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("%s needs one SOURCE, but got %d arguments; see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := openSource(args[0])
			if err != nil {
				return usageError{err}
			}
			err = tools.Serve(cmd.Context(), from, io.NopCloser(stdio.In), keepOpen{stdio.Out})
			if cmd.Context().Err() != nil {
				return nil
			}
			return err
		},
	}
}

// keepOpen is a writer whose Close does nothing.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }
