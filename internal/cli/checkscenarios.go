package cli

import (
	"context"
	"fmt"
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
	files   scenarioFiles
	seed    uint64
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
	f.files.register(fs)
	fs.StringVar(&f.project.Dir, "dir", ".", "folder of the project")
	fs.StringVar(&f.project.Main, "main", "", "folder of the manager's main package (default: detected automatically)")
	fs.StringVar(&f.project.Kustomization, "kustomization", "", "folder of the kustomization that installs the whole project (default: config/default)")
	fs.StringVar(&f.project.CRDs, "crds", "", "file or folder with CustomResourceDefinitions")
	fs.StringVar(&f.project.Samples, "samples", "", "file or folder with samples (default: config/samples)")
	fs.Uint64Var(&f.seed, "seed", 1, "seed for the choice of the fields that are changed")
	f.files.registerForce(fs)
}

func (f *scenariosFlags) run(ctx context.Context, stdio Stdio) error {
	if err := f.files.check(); err != nil {
		return err
	}
	all, notes, err := f.generate(ctx)
	if err != nil {
		return usageError{fmt.Errorf("generating scenarios: %w", err)}
	}
	for _, note := range notes {
		_, _ = fmt.Fprintf(stdio.Err, "koboshi: %s\n", note)
	}
	if err := f.files.write(all, f.comment); err != nil {
		return err
	}
	for _, sc := range all {
		if _, err := fmt.Fprintln(stdio.Out, f.files.path(sc)); err != nil {
			return err
		}
	}
	return nil
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

// comment returns the first lines of the file of a scenario.
func (f *scenariosFlags) comment(sc *scenario.Scenario) string {
	return strings.Join([]string{
		fmt.Sprintf("Generated from %s, with seed %d.", sc.Sample, f.seed),
		"You may edit this file. To check with it:",
		f.files.usage(sc),
	}, "\n")
}
