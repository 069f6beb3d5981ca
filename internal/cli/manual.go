package cli

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/koboshi-dev/koboshi/internal/cli/static"
)

// newManual returns the hidden command that writes the manual pages of a release. The pages depend only
// on the program and on SOURCE_DATE_EPOCH.
func newManual() *cobra.Command {
	return &cobra.Command{
		Use:    "manual FOLDER",
		Short:  "Write the manual pages of all commands to a folder",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
			if err != nil {
				return usageError{fmt.Errorf("SOURCE_DATE_EPOCH is %q; set it to the time of the pages, in seconds since 1970", os.Getenv("SOURCE_DATE_EPOCH"))}
			}
			date := time.Unix(seconds, 0).UTC()
			root := cmd.Root()
			root.DisableAutoGenTag = true // it would contain the time of the build
			err = os.MkdirAll(args[0], 0o755)
			if err == nil {
				err = doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &date, Source: "koboshi " + static.Koboshi(), Manual: "Koboshi"}, args[0])
			}
			if err != nil {
				return fmt.Errorf("writing manual pages: %w", err)
			}
			return nil
		},
	}
}
