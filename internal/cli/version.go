package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/cli/static"
)

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of Koboshi and its built-in Kubernetes",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text := static.VersionLine()
			switch output {
			case "json":
				text = static.VersionJSON()
			case "":
			default:
				return usageError{fmt.Errorf("unknown output format %q; use -o json, or omit -o", output)}
			}
			_, err := fmt.Fprint(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return cmd
}
