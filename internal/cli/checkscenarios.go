package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/project"
)

// scenariosFlags holds the flags of koboshi check scenarios as given.
type scenariosFlags struct {
	project project.Options
	dir     string // the folder to write to
	seed    uint64
	force   bool
}

func newCheckScenarios(stdio Stdio) *cobra.Command {
	var f scenariosFlags
	cmd := &cobra.Command{
		Use:   "scenarios --output-dir DIR [flags]",
		Short: "Write the scenarios that koboshi check generates to files, for editing",
		Long: `Write the scenarios that koboshi check generates from the project's samples, one
per file. Edit the files, and check with them instead of generated scenarios:

  koboshi check --scenario DIR

With equal flags and an equal seed, "koboshi check" generates the same scenarios.
Nothing is built, and no control plane is started. Existing files are not
replaced without --force.`,
		Example: `  koboshi check scenarios --output-dir scenarios
  koboshi check --scenario scenarios`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), stdio)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

func (f *scenariosFlags) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	fs.StringVar(&f.dir, "output-dir", "", "folder to write the files to")
	fs.StringVar(&f.project.Dir, "dir", ".", "folder of the project")
	fs.StringVar(&f.project.Main, "main", "", "folder of the manager's main package (default: detected automatically)")
	fs.StringVar(&f.project.Kustomization, "kustomization", "", "folder of the kustomization that installs the whole project (default: config/default)")
	fs.StringVar(&f.project.CRDs, "crds", "", "file or folder with CustomResourceDefinitions")
	fs.StringVar(&f.project.Samples, "samples", "", "file or folder with samples (default: config/samples)")
	fs.Uint64Var(&f.seed, "seed", 1, "seed for the choice of the fields that are changed")
	fs.BoolVar(&f.force, "force", false, "replace existing files")
}

func (f *scenariosFlags) run(ctx context.Context, stdio Stdio) error {
	if f.dir == "" {
		return usageError{errors.New("no folder is given; name the folder to write to with --output-dir")}
	}
	all, notes, err := f.generate(ctx)
	if err != nil {
		return usageError{fmt.Errorf("generating scenarios: %w", err)}
	}
	for _, note := range notes {
		_, _ = fmt.Fprintf(stdio.Err, "koboshi: %s\n", note)
	}
	return f.write(stdio.Out, all)
}

// generate makes the same scenarios as a check.
func (f *scenariosFlags) generate(ctx context.Context) ([]*scenario.Scenario, []string, error) {
	p, err := project.Load(ctx, f.project)
	if err != nil {
		return nil, nil, err
	}
	all, notes, err := p.Scenarios(f.seed)
	if err != nil {
		return nil, nil, err
	}
	kept, note := check.WithoutDown(all, p.Subject)
	if note != "" {
		notes = append(notes, note)
	}
	return kept, notes, nil
}

// write writes one file for each scenario and lists the files. If one of the files exists,
// it writes nothing.
func (f *scenariosFlags) write(out io.Writer, all []*scenario.Scenario) error {
	for _, sc := range all {
		path := f.file(sc)
		if _, err := os.Lstat(path); err == nil && !f.force {
			return usageError{fmt.Errorf("%s exists, so nothing was written; choose another folder with --output-dir, or replace existing files with --force", path)}
		}
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return fmt.Errorf("writing scenarios: %w", err)
	}
	for _, sc := range all {
		data, err := sc.YAML(f.comment(sc))
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.file(sc), data, 0o644); err != nil {
			return fmt.Errorf("writing scenario %s: %w", sc.Name, err)
		}
		if _, err := fmt.Fprintln(out, f.file(sc)); err != nil {
			return err
		}
	}
	return nil
}

func (f *scenariosFlags) file(sc *scenario.Scenario) string {
	return filepath.Join(f.dir, sc.Name+".yaml")
}

// comment returns the first lines of the file of a scenario.
func (f *scenariosFlags) comment(sc *scenario.Scenario) string {
	return strings.Join([]string{
		fmt.Sprintf("Generated from %s, with seed %d.", sc.Sample, f.seed),
		"You may edit this file. To check with it:",
		"", "  koboshi check --scenario " + f.file(sc),
		"", "With all files of this folder:", "", "  koboshi check --scenario " + f.dir, "",
	}, "\n")
}
