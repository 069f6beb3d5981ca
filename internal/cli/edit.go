package cli

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/scaffold"
)

func newEdit() *cobra.Command {
	var f scaffoldFlags
	var o scaffold.EditOptions
	var u scaffold.UpdateOptions
	var update bool
	cmd := &cobra.Command{
		Use:   "edit --multigroup | --update",
		Short: "Change the layout of the project, or update its scaffold",
		Long: `Change the layout of the project, or update its scaffold.

With --multigroup, each API group gets a folder of its own, so that the project can
have several groups. The files are moved with your changes, and all imports of the
moved packages are changed. --multigroup=false moves them back.

With --update, the project gets the scaffold of this version of koboshi. The file
hack/koboshi-templates.tar.gz holds the scaffold that the project has now; only the
difference between the two is merged into your files. Versions in go.mod are raised,
but never lowered if you have raised them. If you and koboshi have changed the same
lines, nothing is written, and Koboshi prints each conflict. Make these changes by
hand, or keep your lines with --skip-conflicts.`,
		Example: `  koboshi edit --multigroup
  koboshi edit --update --dry-run
  koboshi edit --update`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.Getwd()
			if err != nil {
				return err
			}
			layout := cmd.Flags().Changed("multigroup")
			switch {
			case layout == update:
				return usageError{errors.New("use either --multigroup or --update; see koboshi edit --help")}
			case layout && (u.Adopt || u.SkipConflicts):
				return usageError{errors.New("--adopt and --skip-conflicts need --update; omit them")}
			case layout:
				o.Dir, o.Force = dir, f.force
				plan, err := scaffold.Edit(o)
				return f.execute(cmd, plan, err)
			}
			u.Dir, u.Force = dir, f.force
			plan, err := scaffold.Update(u)
			return f.execute(cmd, plan, err)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.MultiGroup, "multigroup", false, "give each API group a folder of its own")
	fs.BoolVar(&update, "update", false, "move the project to the scaffold of this version of koboshi")
	fs.BoolVar(&u.SkipConflicts, "skip-conflicts", false, "with --update: leave out the changes that conflict with yours")
	fs.BoolVar(&u.Adopt, "adopt", false, "with --update: only prepare the project for the next update; for a project that was not created with koboshi init")
	f.bindGenerate(cmd)
	f.bind(cmd)
	return cmd
}

func newDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete",
		Short: "Remove an API or webhooks from the project",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		newDeleteOf("api", "Remove an API, with its controller and webhooks, from the project", false),
		newDeleteOf("webhook", "Remove the webhooks of a kind from the project", true),
	)
	return cmd
}

func newDeleteOf(what, short string, webhooks bool) *cobra.Command {
	var f scaffoldFlags
	o := scaffold.DeleteOptions{Webhooks: webhooks}
	cmd := &cobra.Command{
		Use:   what + " --group GROUP --version VERSION --kind KIND",
		Short: short,
		Long: short + `.

Only files that you have not edited are deleted. If there are others, nothing is
written, and Koboshi lists them. --force deletes them too.`,
		Example: "  koboshi delete " + what + " --group view --version v1 --kind MarkdownView",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Dir, err = os.Getwd(); err != nil {
				return err
			}
			o.Force = f.force
			plan, err := scaffold.Delete(o)
			return f.execute(cmd, plan, err)
		},
	}
	bindKind(cmd, &o.Kind)
	f.bindGenerate(cmd)
	f.bind(cmd)
	return cmd
}
