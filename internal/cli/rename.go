package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/scaffold"
)

func newRename() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rename",
		Short: "Rename a kind of the project",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newRenameAPI())
	return cmd
}

func newRenameAPI() *cobra.Command {
	var f scaffoldFlags
	var o scaffold.RenameOptions
	cmd := &cobra.Command{
		Use:   "api --group GROUP --kind OLD --to NEW",
		Short: "Rename a kind in all its versions",
		Long: `Rename a kind in all its versions, with its controller, webhooks, tests and
manifests. The files are moved with your changes.

In Go files, the declarations in the kind's packages whose names contain the kind
are renamed, with everything in the project that refers to them. Comments and
strings are changed only in files that belong to the kind. Fields keep their
names. If a new name has another meaning already, nothing is written, and each
conflict is named.

A renamed kind is a new API: existing objects in clusters keep the old kind.`,
		Example: `  koboshi rename api --group view --kind MarkdownView --to MarkdownPage
  koboshi rename api --group view --kind MarkdownView --to MarkdownPage --dry-run`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Dir, err = os.Getwd(); err != nil {
				return err
			}
			plan, err := scaffold.Rename(o)
			return f.execute(cmd, plan, err)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Group, "group", "", "API group, without the project's domain")
	fs.StringVar(&o.Kind, "kind", "", "current name of the kind")
	fs.StringVar(&o.To, "to", "", "new name of the kind")
	fs.StringVar(&o.Plural, "plural", "", "plural of the new name, if it is irregular")
	f.bindGenerate(cmd)
	f.bindReport(cmd)
	return cmd
}
