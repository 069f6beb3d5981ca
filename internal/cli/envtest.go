package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/envtest/assets"
	"github.com/koboshi-dev/koboshi/internal/kubeversion"
)

func newEnvtest(stdio Stdio) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "envtest",
		Short: "Install Koboshi where envtest looks for etcd and kube-apiserver",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q; see %s --help", args[0], cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newEnvtestPath(), newEnvtestInstall(stdio))
	return cmd
}

func newEnvtestPath() *cobra.Command {
	return &cobra.Command{
		Use:   "path",
		Short: "Print the folder to use as KUBEBUILDER_ASSETS",
		Long: `Create a folder of links to Koboshi in your cache, and print the path of the
folder. The links are named etcd, kube-apiserver and kubectl. To use Koboshi
with envtest, set KUBEBUILDER_ASSETS to the printed path.`,
		Example: `  export KUBEBUILDER_ASSETS="$(koboshi envtest path)"
  ENVTEST_USE_ENV=true KUBEBUILDER_ASSETS="$(koboshi envtest path)" make test`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			folder, err := assets.Folder()
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), folder)
			return err
		},
	}
}

// installFlags holds the flags of koboshi envtest install as given.
type installFlags struct {
	binDir string
	store  bool
	force  bool
	output string
}

func newEnvtestInstall(stdio Stdio) *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install Koboshi for one project, or for all that use setup-envtest",
		Long: `Install Koboshi as etcd, kube-apiserver and kubectl in the folder
bin/k8s/` + platformFolder() + ` of the current project. In a kubebuilder project,
the Makefile looks for these programs in that folder, and so do test suites that
an IDE starts. To replace bin with another folder, use --bin-dir.

With --store, Koboshi is installed for all projects, in the folder where
setup-envtest keeps its downloads. If the file system supports hard links, the
three programs use the disk space of one. To uninstall Koboshi, remove the
folder that contains the installed programs.`,
		Example: `  koboshi envtest install
  koboshi envtest install --store
  make test ENVTEST_K8S_VERSION=` + kubeversion.Version,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.output != "" && f.output != "json" {
				return usageError{fmt.Errorf("unknown output format %q; use -o json, or omit -o", f.output)}
			}
			dir, err := f.dir()
			if err != nil {
				return err
			}
			return installAssets(dir, f, cmd.OutOrStdout(), stdio.Err)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.binDir, "bin-dir", "", "folder to use in place of the project's bin folder")
	fs.BoolVar(&f.store, "store", false, "install for all projects that use setup-envtest")
	fs.BoolVar(&f.force, "force", false, "also replace files that belong to other programs")
	fs.StringVarP(&f.output, "output", "o", "", "output format: json")
	return cmd
}

// dir returns the folder to install into.
func (f installFlags) dir() (string, error) {
	root := f.binDir
	switch {
	case f.binDir != "" && f.store:
		return "", usageError{errors.New("--store and --bin-dir name different folders; use only one of them")}
	case f.store:
		var err error
		if root, err = storeFolder(); err != nil {
			return "", err
		}
	case f.binDir == "":
		project, err := projectFolder()
		if err != nil {
			return "", err
		}
		root = filepath.Join(project, "bin")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return "", fmt.Errorf("resolving --bin-dir: %w", err)
	}
	return filepath.Join(root, "k8s", platformFolder()), nil
}

// platformFolder returns a folder name that setup-envtest understands.
func platformFolder() string {
	return fmt.Sprintf("%s-%s-%s", kubeversion.Version, runtime.GOOS, runtime.GOARCH)
}

// storeFolder returns the folder where setup-envtest keeps its downloads; see
// defaultStore in its package store.
func storeFolder() (string, error) {
	if runtime.GOOS != "darwin" {
		if data := os.Getenv("XDG_DATA_HOME"); data != "" {
			return filepath.Join(data, "kubebuilder-envtest"), nil
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", usageError{errors.New("--store needs your home folder, but HOME is not set; set HOME, or choose a folder with --bin-dir")}
	}
	if runtime.GOOS == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "io.kubebuilder.envtest"), nil
	}
	return filepath.Join(home, ".local", "share", "kubebuilder-envtest"), nil
}

// projectFolder returns the nearest folder, from the current one upwards, that holds a
// kubebuilder project or a Go module.
func projectFolder() (string, error) {
	current, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the project: %w", err)
	}
	for dir := current; ; dir = filepath.Dir(dir) {
		for _, mark := range []string{"PROJECT", "go.mod"} {
			if info, err := os.Stat(filepath.Join(dir, mark)); err == nil && info.Mode().IsRegular() {
				return dir, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", usageError{fmt.Errorf("found no PROJECT or go.mod in %s or its parent folders; change to your project's folder, or use --bin-dir or --store", current)}
		}
	}
}

func installAssets(dir string, f installFlags, out, notes io.Writer) error {
	done, err := assets.Install(dir, f.force)
	var foreign *assets.ForeignError
	if errors.As(err, &foreign) {
		return usageError{fmt.Errorf("%w; use --force to replace these files, or choose another --bin-dir", foreign)}
	}
	if err != nil {
		return fmt.Errorf("%w; choose another folder with --bin-dir", err)
	}
	if first := firstInstalled(filepath.Dir(dir)); first != filepath.Base(dir) {
		_, _ = fmt.Fprintf(notes, "koboshi: suites that are not started by make use %s, because it comes first in alphabetical order; remove that folder to use koboshi\n",
			filepath.Join(filepath.Dir(dir), first))
	}
	if f.output == "json" {
		return json.NewEncoder(out).Encode(done)
	}
	_, err = fmt.Fprintf(out, "installed %s in\n%s\nto use them, run make test ENVTEST_K8S_VERSION=%s\n",
		strings.Join(done.Files, ", "), done.Dir, kubeversion.Version)
	return err
}

// firstInstalled returns the name of the first folder in dir. Suites generated by
// kubebuilder use this folder if KUBEBUILDER_ASSETS is not set.
func firstInstalled(dir string) string {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.IsDir() {
			return entry.Name()
		}
	}
	return ""
}
