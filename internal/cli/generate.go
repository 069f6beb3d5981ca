package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/manifest"
	"github.com/koboshi-dev/koboshi/internal/scaffold"
)

// generateVersion is the version of the output of koboshi generate -o json.
const generateVersion = "generate.koboshi.dev/v1"

// generateFlags holds the flags of koboshi generate as given.
type generateFlags struct {
	dir     string
	check   bool
	lenient bool
	against string
	// rbacFrom is the file with a report of koboshi check.
	rbacFrom string
	output   string
}

func newGenerate(stdio Stdio) *cobra.Command {
	var f generateFlags
	cmd := &cobra.Command{
		Use:   "generate [flags] [controller-gen arguments...]",
		Short: "Generate CRDs, RBAC roles, webhooks and Go code from the markers in the code",
		Long: `Generate CRDs, RBAC roles, webhook configurations, deepcopy functions and apply
configurations from the markers in the Go code, as controller-gen
` + manifest.ToolsVersion + ` does, byte for byte; and clients, as client-gen, lister-gen and informer-gen of
k8s.io/code-generator ` + manifest.ClientsVersion + ` do. Without arguments, it also generates policies from the
markers +koboshi:policy. Only files that differ are written. If anything fails,
nothing is written.

The project's Makefile determines what is generated: Koboshi reads the recipes of
the targets manifests and generate, finds the calls of these programs in them,
and does what they would do. It does not run other commands in these recipes, but
names them. A project without such a Makefile gets what kubebuilder's Makefile
would generate. Arguments replace all of this; their syntax is controller-gen's.

A marker that is misspelled, has wrong arguments, or stands where it has no
effect is an error. With --lenient, Koboshi ignores these markers, as
controller-gen does.

With --check --against, Koboshi also checks whether the API is safe for users of
an earlier revision: it compares the CRDs with those of that revision, and lets an
API server store objects under the old CRDs, and read, write and convert them
under the new ones. The objects are the samples of that revision, and objects
generated for the fields that changed.

With --rbac-from, Koboshi first edits the markers +kubebuilder:rbac so that they
grant the permissions that koboshi check found missing. If none was missing and
the check was complete, Koboshi instead removes the permissions that no run
needed, except those that the controller grants to others. Koboshi then runs the
scenarios of that check again, without faults, and adds the permissions for
refused requests. If that fails, it restores all files.

If nothing has changed since the last run, Koboshi only compares fingerprints,
which it keeps in your cache folder.

Exit code: 0 if all files are up to date or have been written; 1 if something is
wrong with the project or, with --check, if a file is out of date or a change
breaks users; 2 if the command line is wrong.`,
		Example: `  koboshi generate
  koboshi generate --check
  koboshi generate --check --against v1.2.0
  koboshi check -o json=report.json; koboshi generate --rbac-from report.json
  koboshi generate crd paths=./api/... output:crd:dir=config/crd/bases
  koboshi generate -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.output != "" && f.output != "json" {
				return usageError{fmt.Errorf("unknown output format %q; use -o json, or omit -o", f.output)}
			}
			if cmd.Flags().Changed("against") && (!f.check || f.against == "") {
				return usageError{errors.New("--against needs --check and a revision; use koboshi generate --check --against v1.2.0")}
			}
			if cmd.Flags().Changed("rbac-from") && (f.rbacFrom == "" || len(args) > 0 || f.against != "") {
				return usageError{errors.New("--rbac-from needs a report, and neither arguments nor --against; use koboshi check -o json=report.json, then koboshi generate --rbac-from report.json")}
			}
			return f.run(cmd, args, stdio)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.dir, "dir", ".", "folder of the project, or a folder in it")
	fs.BoolVar(&f.check, "check", false, "write nothing, and fail if a file is out of date; print the differences")
	fs.StringVar(&f.against, "against", "", "with --check: git revision, such as a tag, with which the CRDs must stay compatible")
	fs.StringVar(&f.rbacFrom, "rbac-from", "", "JSON report of koboshi check, whose missing and unused permissions become changes of markers")
	fs.BoolVar(&f.lenient, "lenient", false, "ignore wrong markers, as controller-gen does")
	fs.StringVarP(&f.output, "output", "o", "", "output format: json")
	return cmd
}

func (f *generateFlags) run(cmd *cobra.Command, args []string, stdio Stdio) error {
	start := time.Now()
	if info, err := os.Stat(f.dir); err != nil || !info.IsDir() {
		return usageError{fmt.Errorf("--dir is %q, which is not a folder; name the folder of your project", f.dir)}
	}
	patch, err := f.patchMarkers(cmd.Context(), stdio)
	if err != nil {
		return err
	}
	result, err := generateFiles(cmd.Context(), f.options(args))
	var noProject *manifest.NoProjectError
	switch {
	case errors.As(err, &noProject), err != nil && manifest.IsCallError(err):
		return usageError{err}
	case err != nil:
		return fmt.Errorf("generating: %w", err)
	}
	if len(args) == 0 && len(result.Problems) == 0 {
		if err := f.agents(result); err != nil {
			return err
		}
	}
	took := time.Since(start)
	var against *comparison
	if f.against != "" && len(result.Problems) == 0 {
		if against, err = compareWith(cmd.Context(), f.against, result, stdio); err != nil {
			return err
		}
	}
	if f.output == "json" {
		if err := f.writeJSON(cmd.OutOrStdout(), result, against, patch, time.Since(start)); err != nil {
			return err
		}
	} else {
		if err := patch.write(cmd.OutOrStdout(), stdio.Err); err != nil {
			return err
		}
		if err := f.writeText(cmd.OutOrStdout(), stdio.Err, result, took); err != nil {
			return err
		}
		if err := against.write(cmd.OutOrStdout()); err != nil {
			return err
		}
	}
	return joined(joined(patch.verdict(), f.verdict(result)), against.verdict())
}

func (f *generateFlags) options(args []string) manifest.Options {
	return manifest.Options{Dir: f.dir, Args: args, Check: f.check, Lenient: f.lenient}
}

// generatePercent is the growth of the heap, in percent, after which garbage is collected while
// generating. Most of what is allocated, such as syntax trees, lives until the end. With Go's
// default of 100, collecting takes a fifth of the processor time, including the go command's.
const generatePercent = 400

// generateFiles generates the files of a project, and keeps fingerprints in the user's cache folder.
func generateFiles(ctx context.Context, o manifest.Options) (*manifest.Result, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(generatePercent))
	o.Cache = generateCache()
	return manifest.Generate(ctx, o)
}

// agents keeps the list of kinds in AGENTS.md up to date.
func (f *generateFlags) agents(result *manifest.Result) error {
	plan, err := scaffold.Agents(result.Dir)
	if err != nil || len(plan.Changes) == 0 {
		return err
	}
	c := plan.Changes[0]
	var diff strings.Builder
	if f.check {
		err = writeDiff(&diff, c)
	} else {
		err = scaffold.Write(plan.Dir, plan.Changes)
	}
	result.Files = slices.Insert(result.Files, 0, manifest.File{Path: c.Path, Action: manifest.Updated, Diff: diff.String()})
	return err
}

// joined joins the verdicts in one line.
func joined(first, second error) error {
	if first != nil && second != nil {
		return fmt.Errorf("%w; %w", first, second)
	}
	return errors.Join(first, second)
}

// generateCache returns the folder for fingerprints, or an empty string if there is no cache
// folder.
func generateCache() string {
	folder, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(folder, "koboshi", "generate")
}

// verdict returns the error with which the command ends.
func (f *generateFlags) verdict(result *manifest.Result) error {
	switch problems, changed := len(result.Problems), result.Changed(); {
	case problems == 1:
		return errors.New("nothing was generated, because there is 1 problem; correct it, and run the command again")
	case problems > 1:
		return fmt.Errorf("nothing was generated, because there are %d problems; correct them, and run the command again", problems)
	case f.check && changed == 1:
		return errors.New("1 file is out of date; run koboshi generate, and commit the result")
	case f.check && changed > 1:
		return fmt.Errorf("%d files are out of date; run koboshi generate, and commit the result", changed)
	}
	return nil
}

// writeText writes notes and problems to the error stream, and everything else to the standard
// output. Paths are relative to the current folder, so that terminals and editors can open
// them.
func (f *generateFlags) writeText(out, notes io.Writer, result *manifest.Result, took time.Duration) error {
	for _, note := range result.Notes {
		_, _ = fmt.Fprintf(notes, "koboshi: %s\n", note)
	}
	prefix := fromHere(result.Dir)
	for _, p := range result.Problems {
		if p.File != "" && !filepath.IsAbs(p.File) {
			p.File = filepath.ToSlash(filepath.Join(prefix, p.File))
		}
		_, _ = fmt.Fprintln(notes, p)
	}
	if len(result.Problems) > 0 {
		return nil
	}
	if _, err := out.Write(result.Stdout); err != nil {
		return err
	}
	for _, file := range result.Files {
		if file.Action == manifest.Unchanged {
			continue
		}
		line := fmt.Sprintf("%s %s\n", file.Action, filepath.Join(prefix, file.Path))
		if f.check {
			line = file.Diff
		}
		if _, err := io.WriteString(out, line); err != nil {
			return err
		}
	}
	return f.writeSummary(out, notes, result, took)
}

// writeSummary writes the last line. The line is not written to the standard output if a generator
// or a diff has written there.
func (f *generateFlags) writeSummary(out, notes io.Writer, result *manifest.Result, took time.Duration) error {
	changed := result.Changed()
	if f.check && changed > 0 {
		return nil
	}
	if len(result.Stdout) > 0 {
		out = notes
	}
	files := "files"
	if changed == 1 {
		files = "file"
	}
	_, err := fmt.Fprintf(out, "generated %d %s, %d unchanged, in %.1f s\n", changed, files, len(result.Files)-changed, took.Seconds())
	return err
}

// fromHere returns the folder relative to the current one, or the folder itself if the current
// one is not known.
func fromHere(dir string) string {
	here, err := os.Getwd()
	if err != nil {
		return dir
	}
	if here, err = filepath.EvalSymlinks(here); err != nil {
		return dir
	}
	relative, err := filepath.Rel(here, dir)
	if err != nil {
		return dir
	}
	return relative
}

// generateOutput is the output of koboshi generate -o json.
type generateOutput struct {
	APIVersion string `json:"apiVersion"`
	// Dir is the folder to which all paths are relative.
	Dir string `json:"dir"`
	// Check reports whether the command was called with --check, so that nothing was written.
	Check    bool               `json:"check"`
	Files    []manifest.File    `json:"files"`
	Problems []manifest.Problem `json:"problems"`
	Notes    []string           `json:"notes"`
	Stdout   string             `json:"stdout,omitempty"`
	// Against is the comparison with an earlier revision.
	Against *comparison `json:"against,omitempty"`
	// RBAC lists the changes of markers by --rbac-from.
	RBAC    *markerPatch `json:"rbac,omitempty"`
	Seconds float64      `json:"seconds"`
}

func (f *generateFlags) writeJSON(w io.Writer, result *manifest.Result, against *comparison, patch *markerPatch, took time.Duration) error {
	out := generateOutput{
		APIVersion: generateVersion, Dir: result.Dir, Check: f.check,
		Files: []manifest.File{}, Problems: []manifest.Problem{}, Notes: []string{},
		Stdout: string(result.Stdout), Against: against, RBAC: patch, Seconds: took.Round(time.Millisecond).Seconds(),
	}
	out.Files = append(out.Files, result.Files...)
	out.Problems = append(out.Problems, result.Problems...)
	out.Notes = append(out.Notes, result.Notes...)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}
