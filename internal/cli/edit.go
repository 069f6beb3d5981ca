package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/scaffold"
)

func newEdit() *cobra.Command {
	var f scaffoldFlags
	var o scaffold.EditOptions
	cmd := &cobra.Command{
		Use:   "edit --multigroup",
		Short: "Change the layout of the project",
		Long: `Change the layout of the project. With --multigroup, each API group gets a folder
of its own, so that the project can have several groups. The files are moved with
your changes, and all imports of the moved packages are changed.
--multigroup=false moves them back.`,
		Example: "  koboshi edit --multigroup",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Dir, err = os.Getwd(); err != nil {
				return err
			}
			o.Force = f.force
			plan, err := scaffold.Edit(o)
			return f.execute(cmd, plan, err)
		},
	}
	cmd.Flags().BoolVar(&o.MultiGroup, "multigroup", false, "give each API group a folder of its own")
	_ = cmd.MarkFlagRequired("multigroup")
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
written, and each of them is named. --force deletes them too.`,
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
