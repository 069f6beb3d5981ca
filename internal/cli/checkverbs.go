package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/fleet"
	"github.com/koboshi-dev/koboshi/internal/check/judge"
	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func newCheckReplay(stdio Stdio) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Run the fault of a finding again",
		Long: `Run the fault of a finding again: learn its scenario, do what was done then, and
say whether the controller still does not get up. Exit code: 0 it gets up now,
1 it does not, 2 could not check.`,
		Example: "  koboshi check replay .koboshi/findings/DIVERGED-life-create-1a2b3c4d.json",
		Args:    oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.replay(cmd, args[0], stdio)
		},
	}
	cmd.Flags().StringArrayVarP(&f.output, "output", "o", nil, "as koboshi check has it")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "say more")
	return cmd
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("%s takes one file, and got %d; see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())}
	}
	return nil
}

func (f *checkFlags) replay(cmd *cobra.Command, file string, stdio Stdio) error {
	outputs, err := parseOutputs(f.output)
	if err != nil {
		return usageError{err}
	}
	saved, err := report.LoadFinding(file)
	if err != nil {
		return usageError{err}
	}
	// The flags of then say what is checked; those of now, what is said.
	then := checkFlags{verbose: f.verbose}
	fs := pflag.NewFlagSet("check", pflag.ContinueOnError)
	then.register(fs)
	if err := fs.Parse(saved.Subject); err != nil {
		return usageError{fmt.Errorf("%s: its flags are not known any more: %w; run koboshi check again", file, err)}
	}
	then.command = fs.Args()
	o, err := then.options(fs)
	if err != nil {
		return usageError{err}
	}
	o.Scenarios, o.Seed, o.Workers, o.Only = []*scenario.Scenario{&saved.Scenario}, saved.Finding.Seed, 1, true
	if saved.Finding.Fault != nil {
		o.First = map[string][]fault.Fault{saved.Scenario.Name: {*saved.Finding.Fault}}
	}
	result, err := then.check(cmd.Context(), o, stdio)
	if err != nil {
		return couldNot(cmd.Context(), err)
	}
	if err := applied(result.Report); err != nil {
		return couldNot(cmd.Context(), fmt.Errorf("%s: %w", file, err))
	}
	for i := range result.Report.Findings {
		result.Report.Findings[i].File, result.Report.Findings[i].Replay = file, "koboshi check replay "+file
	}
	result.Report.Command = "koboshi check replay " + file
	if err := outputs.write(result, f.verbose, stdio); err != nil {
		return err
	}
	return exitOf(result.Report)
}

// applied says why the fault of a replay says nothing, if it does not: that the
// controller gets up is not known then.
func applied(r *report.Report) error {
	if len(r.Findings) > 0 {
		return nil
	}
	for _, not := range slices.Concat(r.NotApplied, r.Inconclusive) {
		return fmt.Errorf("%s: %s; if the controller has changed since, run koboshi check again", not.Fault, not.Why)
	}
	return nil
}

// subject are the flags and the command that say what was checked.
func (f *checkFlags) subject() (args []string) {
	for _, name := range subjectFlags {
		for _, value := range f.values[name] {
			args = append(args, "--"+name+"="+value)
		}
	}
	if len(f.command) > 0 {
		args = append(append(args, "--"), f.command...)
	}
	return args
}

// savedTraces reads the traces of findings that lie in files here.
func savedTraces(findings []judge.Finding) map[string][]trace.Entry {
	traces := map[string][]trace.Entry{}
	for _, f := range findings {
		if saved, err := report.LoadFinding(f.File); err == nil {
			traces[f.ID] = saved.Trace
		}
	}
	return traces
}

func newCheckReport(stdio Stdio) *cobra.Command {
	var output []string
	var verbose bool
	cmd := &cobra.Command{
		Use:     "report FILE...",
		Short:   "Merge the JSON reports of shards, and print or convert them",
		Example: "  koboshi check report part-*.json -o html=report.html",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("koboshi check report takes reports that were written with -o json=FILE; name at least one")}
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
			if err := outputs.write(&check.Result{Report: merged, Traces: savedTraces(merged.Findings)}, verbose, stdio); err != nil {
				return err
			}
			return exitOf(merged)
		},
	}
	cmd.Flags().StringArrayVarP(&output, "output", "o", nil, "text, json, junit, sarif or html, with =FILE to write it there; may be repeated")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "say more")
	return cmd
}

func newCheckSchema(stdio Stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of scenarios, for an editor",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := stdio.Out.Write(scenario.Schema())
			return err
		},
	}
}

// newCheckLab is what koboshi check runs a plane in.
func newCheckLab(stdio Stdio) *cobra.Command {
	return &cobra.Command{
		Use:    "lab",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fleet.Serve(cmd.Context(), stdio.In, stdio.Out)
		},
	}
}

// lookPath finds an executable, from here or on the PATH, as an absolute path.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) {
		return "", err
	}
	return filepath.Abs(path)
}
