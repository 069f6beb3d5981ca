package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/manifest"
	"github.com/koboshi-dev/koboshi/internal/scaffold"
)

// scaffoldVersion is the version of the output of the scaffolding commands with -o json.
const scaffoldVersion = "scaffold.koboshi.dev/v1"

// scaffoldFlags holds the flags that the scaffolding commands share.
type scaffoldFlags struct {
	dryRun, force bool
	generate      bool
	output        string
}

func (f *scaffoldFlags) bind(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.force, "force", false, "replace or delete files even if you have edited them")
	f.bindReport(cmd)
}

// bindReport adds the flags of commands that never replace or delete a file.
func (f *scaffoldFlags) bindReport(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.BoolVar(&f.dryRun, "dry-run", false, "write nothing; print the differences")
	fs.StringVarP(&f.output, "output", "o", "", "output format: json")
}

// bindGenerate adds the flag that kubebuilder calls --make.
func (f *scaffoldFlags) bindGenerate(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.generate, "make", true, "run koboshi generate afterwards")
}

// execute carries out a plan, unless it has conflicts, and reports what has changed.
func (f *scaffoldFlags) execute(cmd *cobra.Command, p *scaffold.Plan, err error) error {
	if err != nil {
		return usageError{err}
	}
	if f.output != "" && f.output != "json" {
		return usageError{fmt.Errorf("unknown output format %q; use -o json, or omit -o", f.output)}
	}
	conflicts := scaffold.Conflicting(p.Changes)
	write := !f.dryRun && len(conflicts) == 0
	if write {
		if err := scaffold.Write(p.Dir, p.Changes); err != nil {
			return err
		}
	}
	if err := f.report(cmd.OutOrStdout(), p); err != nil {
		return err
	}
	if len(conflicts) > 0 {
		return errors.New("nothing was written, because of the conflicts above; resolve them" + instead(cmd) + ", and run the command again")
	}
	f.notes(cmd.ErrOrStderr(), p)
	if !write || len(p.Changes) == 0 {
		return nil
	}
	if err := getModules(p); err != nil {
		return err
	}
	if p.Generate && f.generate {
		return f.regenerate(cmd, p)
	}
	return nil
}

// instead returns what a person can do about conflicts besides resolving them.
func instead(cmd *cobra.Command) string {
	if f := cmd.Flags().Lookup("update"); f != nil && f.Changed {
		return ", or keep your version with --skip-conflicts"
	}
	return ""
}

func (f *scaffoldFlags) report(out io.Writer, p *scaffold.Plan) error {
	if f.output == "json" {
		return f.writeJSON(out, p)
	}
	if len(p.Changes) == 0 {
		_, err := fmt.Fprintln(out, "nothing to do: the project is as requested")
		return err
	}
	for _, c := range p.Changes {
		if err := f.line(out, c); err != nil {
			return err
		}
	}
	return nil
}

// notes writes the notes of a plan, which do not belong to the standard output.
func (f *scaffoldFlags) notes(out io.Writer, p *scaffold.Plan) {
	for _, note := range p.Notes {
		_, _ = fmt.Fprintf(out, "koboshi: %s\n", note)
	}
}

// line writes one change: its conflicts, or its difference, or what was done.
func (f *scaffoldFlags) line(out io.Writer, c scaffold.Change) error {
	for _, conflict := range c.Conflicts {
		at := c.Path
		if conflict.Line > 0 {
			at += fmt.Sprintf(":%d", conflict.Line)
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", at, strings.ReplaceAll(conflict.String(), "\n", "\n    ")); err != nil {
			return err
		}
	}
	switch {
	case len(c.Conflicts) > 0:
		return nil
	case f.dryRun:
		return writeDiff(out, c)
	case c.From != "":
		_, err := fmt.Fprintf(out, "%s %s to %s\n", c.Action, c.From, c.Path)
		return err
	}
	_, err := fmt.Fprintf(out, "%s %s\n", c.Action, c.Path)
	return err
}

// writeDiff writes a change in the format of git diff.
func writeDiff(out io.Writer, c scaffold.Change) error {
	from, to := "a/"+c.Path, "b/"+c.Path
	switch {
	case c.From != "":
		from = "a/" + c.From
	case c.Old == nil:
		from = os.DevNull
	case c.New == nil:
		to = os.DevNull
	}
	if bytes.IndexByte(c.New, 0) >= 0 {
		_, err := fmt.Fprintf(out, "Binary files %s and %s differ\n", from, to)
		return err
	}
	return difflib.WriteUnifiedDiff(out, difflib.UnifiedDiff{
		A: slices.Collect(strings.Lines(string(c.Old))), B: slices.Collect(strings.Lines(string(c.New))), FromFile: from, ToFile: to, Context: 3,
	})
}

// scaffoldOutput is the output of a scaffolding command with -o json.
type scaffoldOutput struct {
	APIVersion string `json:"apiVersion"`
	// Dir is the folder to which all paths are relative.
	Dir string `json:"dir"`
	// Written reports whether the changes were made: neither --dry-run nor a conflict
	// prevented it.
	Written bool             `json:"written"`
	Changes []scaffoldChange `json:"changes"`
	Notes   []string         `json:"notes,omitempty"`
}

type scaffoldChange struct {
	Action    scaffold.Action    `json:"action"`
	Path      string             `json:"path"`
	From      string             `json:"from,omitempty"`
	Conflicts []scaffoldConflict `json:"conflicts,omitempty"`
}

type scaffoldConflict struct {
	Line   int    `json:"line,omitempty"`
	Reason string `json:"reason"`
	Text   string `json:"text,omitempty"`
}

func (f *scaffoldFlags) writeJSON(out io.Writer, p *scaffold.Plan) error {
	result := scaffoldOutput{
		APIVersion: scaffoldVersion, Dir: p.Dir, Changes: []scaffoldChange{}, Notes: p.Notes,
		Written: !f.dryRun && len(scaffold.Conflicting(p.Changes)) == 0,
	}
	for _, c := range p.Changes {
		change := scaffoldChange{Action: c.Action, Path: c.Path, From: c.From}
		for _, conflict := range c.Conflicts {
			change.Conflicts = append(change.Conflicts, scaffoldConflict{conflict.Line, conflict.Reason, conflict.Text})
		}
		result.Changes = append(result.Changes, change)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(result)
}

// getModules adds the modules of kinds that other projects define.
func getModules(p *scaffold.Plan) error {
	for _, module := range p.Modules {
		cmd := exec.Command("go", "get", module)
		cmd.Dir = p.Dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("the files were written, but go get %s failed: %w\n%s", module, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}

// regenerate runs koboshi generate in the project.
func (f *scaffoldFlags) regenerate(cmd *cobra.Command, p *scaffold.Plan) error {
	result, err := generateFiles(cmd.Context(), manifest.Options{Dir: p.Dir})
	if err == nil && len(result.Problems) > 0 {
		problem := result.Problems[0]
		if problem.File != "" {
			problem.File = filepath.ToSlash(problem.File)
		}
		err = errors.New(problem.String())
	}
	if err != nil {
		return fmt.Errorf("the files were written, but generating failed: %w", err)
	}
	if f.output == "json" {
		return nil
	}
	for _, file := range result.Files {
		if file.Action != manifest.Unchanged {
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s\n", file.Action, file.Path); err != nil {
				return err
			}
		}
	}
	return nil
}
