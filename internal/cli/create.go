package cli

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/scaffold"
)

func newCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Add an API, a controller or webhooks to the project",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCreateAPI(), newCreateWebhook())
	return cmd
}

// bindKind adds the flags that name a kind.
func bindKind(cmd *cobra.Command, k *scaffold.Kind) {
	fs := cmd.Flags()
	fs.StringVar(&k.Group, "group", "", "API group, without the project's domain")
	fs.StringVar(&k.Version, "version", "", "version of the API, such as v1 or v1alpha1")
	fs.StringVar(&k.Kind, "kind", "", "kind, such as Ship")
}

// bindExternal adds the flags for a kind that another project defines.
func bindExternal(cmd *cobra.Command, k *scaffold.Kind) {
	fs := cmd.Flags()
	fs.StringVar(&k.Plural, "plural", "", "plural of the kind, if it is irregular")
	fs.StringVar(&k.ExternalPath, "external-api-path", "", "import path of the package that defines the kind, if another project does")
	fs.StringVar(&k.ExternalDomain, "external-api-domain", "", "domain of the API group of a kind that another project defines")
	fs.StringVar(&k.ExternalModule, "external-api-module", "", "module of a kind that another project defines, if needed with @VERSION")
}

func newCreateAPI() *cobra.Command {
	var f scaffoldFlags
	var o scaffold.APIOptions
	namespaced := true
	cmd := &cobra.Command{
		Use:   "api --group GROUP --version VERSION --kind KIND",
		Short: "Add an API and its controller to the project",
		Long: `Add an API and its controller to the project: the Go types, the CRD, a sample, a
controller that keeps a ConfigMap for each object, its tests, its permissions, and
a scenario for koboshi check. Replace the ConfigMap with what your kind needs.

With --shape external, the controller keeps a text in a store outside the cluster
instead. It has a finalizer, records in the status what it is about to create, and
checks the store regularly.

With --shape client-go, the controller keeps a Deployment, and uses client-go alone:
a clientset, informers and listers that k8s.io/code-generator generates, and a
rate-limited queue. All controllers of a project have this shape, or none. Such a
project has no webhooks.

Files that you have edited keep your changes. If a change cannot be combined with
yours, nothing is written, and Koboshi prints each conflict.

With --controller-name, a kind can have several controllers. The first one contains
the example; each additional one only reads the object and leaves the rest to you.

To reconcile a kind that the project does not define, such as a Deployment, use
--resource=false.`,
		Example: `  koboshi create api --group view --version v1 --kind MarkdownView
  koboshi create api --group media --version v1 --kind Film --shape external
  koboshi create api --group sample --version v1 --kind Foo --shape client-go
  koboshi create api --group view --version v1 --kind MarkdownView --controller-name markdownview-backup
  koboshi create api --group apps --version v1 --kind Deployment --resource=false
  koboshi create api --group view --version v1 --kind Theme --namespaced=false --controller=false`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Dir, err = os.Getwd(); err != nil {
				return err
			}
			o.Force, o.ClusterScoped = f.force, !namespaced
			if o.ExternalPath != "" && !cmd.Flags().Changed("resource") {
				o.Resource = false
			}
			plan, err := scaffold.CreateAPI(o)
			return f.execute(cmd, plan, err)
		},
	}
	bindKind(cmd, &o.Kind)
	bindExternal(cmd, &o.Kind)
	fs := cmd.Flags()
	fs.BoolVar(&o.Resource, "resource", true, "create the API")
	fs.BoolVar(&o.Controller, "controller", true, "create a controller")
	fs.StringVar(&o.ControllerName, "controller-name", "", "name of the controller, if the kind has several")
	fs.BoolVar(&namespaced, "namespaced", true, "the objects belong to a namespace")
	fs.StringVar(&o.Shape, "shape", "", "example that the controller begins with: "+strings.Join(scaffold.Shapes, ", ")+" (default children, or the shape that the kind has)")
	f.bindGenerate(cmd)
	f.bind(cmd)
	return cmd
}

func newCreateWebhook() *cobra.Command {
	var f scaffoldFlags
	var o scaffold.WebhookOptions
	cmd := &cobra.Command{
		Use:   "webhook --group GROUP --version VERSION --kind KIND [--defaulting] [--programmatic-validation] [--conversion]",
		Short: "Add webhooks to a kind",
		Long: `Add webhooks to a kind: code, tests, configuration, and a certificate from
cert-manager. Existing webhooks of the kind are kept, so you can add one after
the other.

--conversion makes the version the hub, to and from which the versions given with
--spoke are converted.`,
		Example: `  koboshi create webhook --group view --version v1 --kind MarkdownView --defaulting --programmatic-validation
  koboshi create webhook --group view --version v1 --kind MarkdownView --conversion --spoke v1beta1`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.Dir, err = os.Getwd(); err != nil {
				return err
			}
			o.Force = f.force
			plan, err := scaffold.CreateWebhook(o)
			return f.execute(cmd, plan, err)
		},
	}
	bindKind(cmd, &o.Kind)
	fs := cmd.Flags()
	fs.BoolVar(&o.Defaulting, "defaulting", false, "a webhook that sets defaults")
	fs.BoolVar(&o.Validation, "programmatic-validation", false, "a webhook that validates objects")
	fs.BoolVar(&o.Conversion, "conversion", false, "a webhook that converts between versions")
	fs.StringSliceVar(&o.Spokes, "spoke", nil, "versions that are converted to and from --version")
	bindExternal(cmd, &o.Kind)
	f.bindGenerate(cmd)
	f.bind(cmd)
	return cmd
}
