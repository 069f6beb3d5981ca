package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/process/view"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/settings"
)

func newCheckReplay(stdio Stdio) *cobra.Command {
	var f checkFlags
	var yes bool
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Inject the fault of a saved finding again",
		Long: `Inject the fault of a saved finding again, with the original scenario and flags,
and report whether the controller now recovers.

The file names the commands to run. If it is not in .koboshi/findings of the
current folder, these commands are shown first, and run only if you agree.

The values of --env, of --set and of Secrets are not in the file. Variables are
taken from your environment, or from --env; give the values of a chart again with
--set. Secrets get new random values, unless you name the original scenario with
--scenario. If the check read manifests from standard input, pipe the same
manifests into the replay.

Exit code: 0 if the controller recovers, 1 if it does not, 2 if the check could
not be done.`,
		Example: "  koboshi check replay .koboshi/findings/DIVERGED-life-create-3f2a9c1b7d40.json",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.replay(cmd, args[0], yes, stdio)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "run the commands that the file names without asking")
	cmd.Flags().StringArrayVar(&f.project.Env, "env", nil, "NAME=VALUE to add to the controller's environment, or to use for a variable of the finding; may be repeated")
	cmd.Flags().StringArrayVar(&f.project.Set, "set", nil, "PATH=VALUE to use for a value of the finding's chart; may be repeated")
	cmd.Flags().StringArrayVar(&f.scenarios, "scenario", nil, "file with the scenario of the finding, for the original values of its Secrets; may be repeated")
	cmd.Flags().StringArrayVarP(&f.output, "output", "o", nil, outputUsage)
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "also print fields that are not compared and faults that were not applied")
	return cmd
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s takes one file, but got %d; see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())}
	}
	return nil
}

func (f *checkFlags) replay(cmd *cobra.Command, file string, yes bool, stdio Stdio) error {
	outputs, err := parseOutputs(f.output)
	if err != nil {
		return usageError{err}
	}
	saved, err := report.LoadFinding(file)
	if err != nil {
		return usageError{err}
	}
	// The saved flags define what is checked; the flags of this call define how it is
	// reported.
	hurry, settle := secondSignal()
	defer settle()
	original := checkFlags{verbose: f.verbose, hurry: hurry}
	if err := original.parse(file, saved.Subject, f.project.Env, f.project.Set); err != nil {
		return err
	}
	if err := piped(file, original.project, atTerminal(stdio.In)); err != nil {
		return usageError{err}
	}
	if err := useScenario(saved, f.scenarios); err != nil {
		return usageError{err}
	}
	if !yes {
		if err := confirm(cmd.Context(), file, saved, &original, stdio); err != nil {
			return err
		}
	}
	o, err := original.optionsOf(saved, stdio.In)
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", file, err)}
	}
	result, err := original.check(cmd.Context(), o, stdio)
	if err != nil {
		return couldNot(cmd.Context(), err)
	}
	if err := tried(result, saved); err != nil {
		return couldNot(cmd.Context(), fmt.Errorf("%s: %w", file, err))
	}
	result.Report.Replayed(file)
	if err := outputs.write(result, f.verbose, stdio); err != nil {
		return err
	}
	return exitOf(result.Report)
}

// optionsOf returns the options for a replay of a saved finding.
func (f *checkFlags) optionsOf(saved *report.Saved, stdin io.Reader) (check.Options, error) {
	f.inputs, f.paths = false, false // only what is saved is run again
	o, err := f.options(f.flags, stdin)
	if err != nil {
		return o, err
	}
	o.Scenarios, o.Seed, o.Workers, o.Only = []*scenario.Scenario{&saved.Scenario}, saved.Finding.Seed, 1, true
	o.First = report.Faults([]*report.Saved{saved})
	if o.Profile == "" {
		o.Profile = saved.Plane // koboshi check may choose another one by now
	}
	if err := f.usePrograms(&o, nil); err != nil {
		return o, err
	}
	if watched := saved.Finding.WatchedSeconds; watched > 0 {
		o.Horizon, o.EveryRest = time.Duration(watched*float64(time.Second)), true
	}
	return o, nil
}

// again reads the flags and the command of an earlier check, which are saved in a file.
func (f *checkFlags) again(file string, args []string, stdin io.Reader) (check.Options, error) {
	if err := f.parse(file, args, nil, nil); err != nil {
		return check.Options{}, err
	}
	f.inputs, f.paths = false, false // only what is saved is run again
	o, err := f.options(f.flags, stdin)
	if err != nil {
		return check.Options{}, usageError{fmt.Errorf("%s: %w", file, err)}
	}
	return o, nil
}

// parse parses the flags and the command of an earlier check. The values in env and in set
// replace those of --env and --set.
func (f *checkFlags) parse(file string, args, env, set []string) error {
	f.flags = pflag.NewFlagSet("check", pflag.ContinueOnError)
	f.register(f.flags)
	if err := f.flags.Parse(args); err != nil {
		return usageError{fmt.Errorf("%s: a flag saved in the file is no longer supported: %w; run koboshi check again", file, err)}
	}
	f.project.Command = f.flags.Args()
	f.project.Env, f.project.Set = overrideEnv(f.project.Env, env), overrideSet(f.project.Set, set)
	return nil
}

// tried returns an error if a replay found nothing, but no run of the replayed fault or conversion was
// conclusive, because then it is unknown whether the controller recovers.
func tried(result *check.Result, saved *report.Saved) error {
	r := result.Report
	const instead = "if the controller has changed since the finding was saved, run koboshi check again"
	if len(r.Findings) > 0 {
		return nil
	}
	for _, not := range slices.Concat(r.NotApplied, r.Inconclusive) {
		return fmt.Errorf("%s: %s; %s", not.Fault, not.Why, instead)
	}
	if saved.Finding.Verdict == judge.ConversionLossy && !slices.Contains(result.Converted, saved.Scenario.Name) {
		why := append([]string{"the object of the finding could not be converted"}, r.Notes...)
		return fmt.Errorf("%s; %s", strings.Join(why, "; "), instead)
	}
	return nil
}

func newCheckReport(stdio Stdio) *cobra.Command {
	var output []string
	var verbose bool
	cmd := &cobra.Command{
		Use:     "report FILE...",
		Short:   "Merge the JSON reports of shards, then print or convert the result",
		Example: "  koboshi check report part-*.json -o html=report.html",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("no report is given; name at least one file written by koboshi check -o json=FILE")}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			outputs, err := parseOutputs(output)
			if err != nil {
				return usageError{err}
			}
			var parts []*report.Report
			for _, path := range args {
				part, err := report.ReadFile(path)
				if err != nil {
					return usageError{err}
				}
				parts = append(parts, part)
			}
			merged, err := report.Merge(parts)
			if err != nil {
				return usageError{err}
			}
			if err := outputs.write(&check.Result{Report: merged, Traces: merged.SavedTraces()}, verbose, stdio); err != nil {
				return err
			}
			return exitOf(merged)
		},
	}
	cmd.Flags().StringArrayVarP(&output, "output", "o", nil, outputUsage)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also print fields that are not compared and faults that were not applied")
	return cmd
}

func newCheckSchema(stdio Stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "schema [scenario | " + settings.Name + " | report]",
		Short: "Print the JSON schema of scenario files, of " + settings.Name + " or of JSON reports",
		Example: "  koboshi check schema > scenario.schema.json\n" +
			"  koboshi check schema " + settings.Name + " > settings.schema.json\n" +
			"  koboshi check schema report > report.schema.json",
		ValidArgs: []string{"scenario", settings.Name, "report"},
		RunE: func(_ *cobra.Command, args []string) error {
			text := scenario.Schema()
			switch {
			case slices.Equal(args, []string{settings.Name}):
				text = settings.Schema()
			case slices.Equal(args, []string{"report"}):
				text = report.Schema()
			case len(args) > 0 && !slices.Equal(args, []string{"scenario"}):
				return usageError{fmt.Errorf("there is no schema for %q; choose scenario, %s or report", strings.Join(args, " "), settings.Name)}
			}
			_, err := stdio.Out.Write(text)
			return err
		},
	}
}

// newCheckLab returns the hidden command that koboshi check uses to run a plane.
func newCheckLab(stdio Stdio) *cobra.Command {
	return &cobra.Command{
		Use:    "lab",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			view.KeepFromChildren()
			return fleet.Serve(cmd.Context(), stdio.In, stdio.Out)
		},
	}
}
