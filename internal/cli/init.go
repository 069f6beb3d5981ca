package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
	"github.com/koboshi-dev/koboshi/internal/scaffold"
)

func newInit() *cobra.Command {
	var f scaffoldFlags
	var o scaffold.InitOptions
	var k kubebuilderFlags
	cmd := &cobra.Command{
		Use:   "init --domain DOMAIN [--repo MODULE]",
		Short: "Create a project for a controller in the current folder",
		Long: `Create a project in kubebuilder's layout in the current folder, which must be
empty except for a go.mod, hidden files and texts such as README.md.

Nothing is downloaded. You can continue with kubebuilder, make, kustomize and
kubectl. Add kinds with koboshi create api.

If the folder holds the same project already, koboshi init changes nothing.`,
		Example: `  koboshi init --domain example.com --repo github.com/me/markdown-view
  koboshi init --domain example.com --repo github.com/me/ships --multigroup --dry-run
  koboshi init --domain example.com --repo github.com/me/ports --owner "The Port Authors"`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := k.check(); err != nil {
				return usageError{err}
			}
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
	fs.StringVar(&o.License, "license", "", "license at the top of each Go file: apache2 (default) or none")
	fs.StringVar(&o.Owner, "owner", "", "holder of the copyright, named at the top of each Go file")
	fs.StringVar(&o.LicenseFile, "license-file", "", "file with a Go comment for the top of each Go file")
	fs.BoolVar(&o.MultiGroup, "multigroup", false, "give each API group a folder of its own")
	f.bind(cmd)
	k.bind(cmd)
	return cmd
}

// kubebuilderFlags holds flags of kubebuilder init that have only one meaningful value here.
// They exist for scripts that were written for kubebuilder, so the help does not list them.
type kubebuilderFlags struct {
	plugins []string
	version string
}

func (k *kubebuilderFlags) bind(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringSliceVar(&k.plugins, "plugins", nil, "layout of the project: go/v4")
	fs.StringVar(&k.version, "project-version", "3", "version of the file PROJECT: 3")
	fs.Bool("fetch-deps", false, "ignored, because nothing is downloaded")
	fs.Bool("skip-go-version-check", false, "ignored, because the version of Go is not checked")
	for _, name := range []string{"plugins", "project-version", "fetch-deps", "skip-go-version-check"} {
		if err := fs.MarkHidden(name); err != nil {
			panic(err) // the flag does not exist
		}
	}
}

func (k *kubebuilderFlags) check() error {
	for _, plugin := range k.plugins {
		if plugin != "go/v4" && plugin != projectfile.LayoutV4 {
			return fmt.Errorf("unknown plugin %q; omit --plugins, because koboshi init always uses go/v4", plugin)
		}
	}
	if k.version != "3" {
		return fmt.Errorf("unknown project version %q; omit --project-version, because koboshi init always writes version 3", k.version)
	}
	return nil
}
