package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/scaffold"
)

func newInit() *cobra.Command {
	var f scaffoldFlags
	var o scaffold.InitOptions
	cmd := &cobra.Command{
		Use:   "init --domain DOMAIN [--repo MODULE]",
		Short: "Create a project for a controller in the current folder",
		Long: `Create a project in kubebuilder's layout in the current folder, which must be
empty except for a go.mod, hidden files and texts such as README.md.

Nothing is downloaded. kubebuilder, make, kustomize and kubectl can go on with the
project. Add kinds with koboshi create api.

If the folder holds the same project already, koboshi init changes nothing.`,
		Example: `  koboshi init --domain example.com --repo github.com/me/markdown-view
  koboshi init --domain example.com --repo github.com/me/ships --multigroup --dry-run`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Dir, err = os.Getwd(); err != nil {
				return err
			}
			o.Force = f.force
			plan, err := scaffold.Init(o)
			return f.execute(cmd, plan, err)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Domain, "domain", "my.domain", "suffix of the project's API groups")
	fs.StringVar(&o.Repo, "repo", "", "path of the Go module (default: the module in go.mod)")
	fs.StringVar(&o.Name, "project-name", "", "name of the project (default: the name of the folder)")
	fs.BoolVar(&o.MultiGroup, "multigroup", false, "give each API group a folder of its own")
	f.bind(cmd)
	return cmd
}
