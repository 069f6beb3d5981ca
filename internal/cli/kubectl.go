package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's credential plugins
	componentcli "k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"

	_ "github.com/koboshi-dev/koboshi/internal/kubeversion" // sets the version that kubectl version prints
)

// newKubectl returns the verb so that --help lists it. To run the verb, main calls Kubectl
// before any of our flags are parsed.
func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl",
		Short:              "Run upstream kubectl, against the current folder's cluster if there is one",
		DisableFlagParsing: true,
		// Without Run, cobra treats the verb as a help topic and does not list it.
		Run: func(_ *cobra.Command, args []string) { os.Exit(Kubectl(args)) },
	}
}

// Kubectl runs upstream kubectl with the arguments after its name. It
// returns the exit code, unless kubectl ends the process first.
//
// If neither --kubeconfig nor KUBECONFIG is set, kubectl uses the plane whose
// data directory is in the current folder.
func Kubectl(args []string) int {
	useLocalPlane(args)
	// kubectl takes its name for the user agent and the help text from os.Args.
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
	// Arguments after -- belong to a program that kubectl runs.
	if i := slices.Index(args, "--"); i >= 0 {
		args = args[:i]
	}
	named := slices.ContainsFunc(args, func(a string) bool {
		return a == "--kubeconfig" || strings.HasPrefix(a, "--kubeconfig=")
	})
	if named || os.Getenv("KUBECONFIG") != "" {
		return
	}
	local := localKubeconfig()
	if local == "" {
		return
	}
	_ = os.Setenv("KUBECONFIG", local)
	if os.Getenv("KUBECACHEDIR") == "" {
		// kubectl caches discovery data by address. Successive planes reuse addresses, so
		// each plane gets a separate cache.
		_ = os.Setenv("KUBECACHEDIR", filepath.Join(filepath.Dir(local), "cache"))
	}
}

// devDataDir is the folder in a project that holds the kubeconfig of koboshi dev while it runs.
const devDataDir = defaultDataDir + "/dev"

// localKubeconfig returns the kubeconfig of koboshi dev in the current folder or, if there is none,
// the kubeconfig of koboshi up. It returns "" if there is neither.
func localKubeconfig() string {
	for _, dir := range []string{devDataDir, defaultDataDir} {
		file, err := filepath.Abs(filepath.Join(dir, "kubeconfig"))
		if err != nil {
			return ""
		}
		if _, err := os.Stat(file); err == nil && (dir != devDataDir || devRuns(dir)) {
			return file
		}
	}
	return ""
}

// devRuns reports whether a koboshi dev holds the lock of its folder. A koboshi dev that was killed
// does not hold the lock, although its files are still there.
func devRuns(folder string) bool {
	lock, err := os.Open(filepath.Join(folder, tempLock))
	if err != nil {
		return false
	}
	defer func() { _ = lock.Close() }()
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}
