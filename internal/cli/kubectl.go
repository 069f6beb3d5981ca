package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's own credentials plugins
	componentcli "k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"

	_ "github.com/koboshi-dev/koboshi/internal/kubeversion" // kubectl version
)

// newKubectl is only there to be listed by --help: main calls Kubectl before
// any of our flags are parsed.
func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl",
		Short:              "The real kubectl; in a folder with a plane it speaks to that plane",
		DisableFlagParsing: true,
		// Without it cobra takes the verb for a help topic and does not list it.
		Run: func(_ *cobra.Command, args []string) { os.Exit(Kubectl(args)) },
	}
}

// Kubectl runs upstream's kubectl with the arguments that follow its name and
// returns the exit code, unless kubectl ends the process first.
//
// When neither --kubeconfig nor KUBECONFIG says otherwise, the plane whose data
// directory lies in the current folder is meant.
func Kubectl(args []string) int {
	useLocalPlane(args)
	// kubectl tells its name to the API server and in its help by os.Args.
	os.Args = append([]string{"kubectl"}, args...)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	return componentcli.Run(kubectl.NewDefaultKubectlCommandWithArgs(kubectl.KubectlOptions{
		PluginHandler: kubectl.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes),
		Arguments:     os.Args,
		ConfigFlags:   genericclioptions.NewConfigFlags(true).WithDeprecatedPasswordFlag().WithDiscoveryBurst(300).WithDiscoveryQPS(50),
		IOStreams:     streams,
	}))
}

func useLocalPlane(args []string) {
	// What follows belongs to a program that kubectl runs.
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	named := slices.ContainsFunc(args, func(a string) bool {
		return a == "--kubeconfig" || strings.HasPrefix(a, "--kubeconfig=")
	})
	if named || os.Getenv("KUBECONFIG") != "" {
		return
	}
	local, err := filepath.Abs(filepath.Join(defaultDataDir, "kubeconfig"))
	if err != nil {
		return
	}
	if _, err := os.Stat(local); err != nil {
		return
	}
	_ = os.Setenv("KUBECONFIG", local)
	if os.Getenv("KUBECACHEDIR") == "" {
		// kubectl caches discovery by address, and planes follow one another on one.
		_ = os.Setenv("KUBECACHEDIR", filepath.Join(filepath.Dir(local), "cache"))
	}
}
