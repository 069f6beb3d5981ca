package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/suite"
	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/textwidth"
)

// importFlags holds the flags of koboshi check import as given.
type importFlags struct {
	suite string // the folder of the suite
	files scenarioFiles
}

func newCheckImport(stdio Stdio) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import DIR --output-dir DIR",
		Short: "Turn a test suite for kuttl or chainsaw into scenarios",
		Long: `Turn the cases of a test suite for kuttl or chainsaw into scenarios, one per
file, and list everything that is left out. Check with the scenarios:

  koboshi check --scenario DIR

DIR is the folder with kuttl-test.yaml, or a folder that contains the cases of
kuttl or files named chainsaw-test.yaml, at any depth. Objects are applied,
patched and deleted as in the suite. Assertions become expectations.

Commands, templates and expressions are left out. If a part that is left out may
change the cluster, the rest of its case is left out too, so that no step gets
another meaning. Nothing is run, and no control plane is started. Existing files
are not replaced without --force.`,
		Example: `  koboshi check import tests/e2e --output-dir scenarios
  koboshi check --scenario scenarios`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("%s takes the folder of one suite, but got %d; see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			f.suite = args[0]
			return f.run(stdio)
		},
	}
	cmd.Flags().SortFlags = false
	f.files.register(cmd.Flags())
	f.files.registerForce(cmd.Flags())
	return cmd
}

func (f *importFlags) run(stdio Stdio) error {
	if err := f.files.check(); err != nil {
		return err
	}
	root, dir, err := suiteRoot(f.suite)
	if err != nil {
		return usageError{fmt.Errorf("reading the suite: %w", err)}
	}
	files, err := os.OpenRoot(root) // a link in the suite must not lead out of it
	if err != nil {
		return usageError{fmt.Errorf("reading the suite: %w", err)}
	}
	defer func() { _ = files.Close() }()
	s, err := suite.Read(files.FS(), dir)
	if err != nil {
		return usageError{fmt.Errorf("%s: %w", f.suite, err)}
	}
	byScenario := map[*scenario.Scenario]*suite.Case{}
	for _, c := range s.Cases {
		byScenario[c.Scenario] = c
	}
	all := s.Scenarios()
	if len(all) > 0 {
		if err := f.files.write(all, func(sc *scenario.Scenario) string { return f.comment(byScenario[sc]) }); err != nil {
			return err
		}
	}
	width := 80
	if file, ok := stdio.Out.(*os.File); ok && isTerminal(file) {
		width = widthOf(file)
	}
	w := &wrapping{out: stdio.Out, width: width, root: root}
	if err := f.report(w, s); err != nil {
		return err
	}
	if len(all) == 0 {
		return usageError{fmt.Errorf("%s: nothing was imported; the list above gives the reasons", f.suite)}
	}
	return nil
}

// suiteRoot returns the root of the repository that contains a folder, and the path of the folder in
// it, because the files of a suite may be next to its folder. Without a repository, the root is the
// folder above.
func suiteRoot(dir string) (root, within string, err error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return "", "", err
	}
	info, err := os.Stat(full)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", "", fmt.Errorf("%s does not exist", dir)
	case err != nil:
		return "", "", err
	case !info.IsDir():
		return "", "", fmt.Errorf("%s is not a folder; name the folder of the suite", dir)
	}
	root = filepath.Dir(full)
	for at := full; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			root = at
			break
		}
	}
	within, err = filepath.Rel(root, full)
	return root, filepath.ToSlash(within), err
}

// report lists the cases with their files, and what was left out.
func (f *importFlags) report(w *wrapping, s *suite.Suite) error {
	whole, short := 0, 0
	for _, c := range s.Cases {
		if c.Scenario == nil {
			w.line("", "%s: not imported", w.path(c.Dir))
		} else {
			w.line("", "%s", f.files.path(c.Scenario))
			w.line("  ", "from %s: %s", w.path(c.Dir), contents(c.Scenario))
			if c.Short {
				short++
			} else {
				whole++
			}
		}
		w.leftOut(c.LeftOut)
	}
	if len(s.LeftOut) > 0 {
		w.line("", "the suite")
		w.leftOut(s.LeftOut)
	}
	w.line("", "")
	w.line("", "%s: %d with all changes, %d cut short, %d not imported", noun.Count(len(s.Cases), "case"), whole, short, len(s.Cases)-whole-short)
	return w.err
}

// contents counts what a scenario contains.
func contents(sc *scenario.Scenario) string {
	expectations := 0
	for _, st := range sc.Steps {
		expectations += len(st.Expect) + len(st.Wait)
	}
	return noun.Count(len(sc.Steps), "step") + ", " + noun.Count(expectations, "expectation")
}

// wrapping writes lines that fit the width of a terminal. err is the first error.
type wrapping struct {
	out   io.Writer
	width int
	root  string // the folder to which the paths in the suite are relative
	err   error
}

// path returns a path in the suite relative to the working directory, if it is below it.
func (w *wrapping) path(name string) string {
	full := filepath.Join(w.root, filepath.FromSlash(name))
	if working, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(working, full); err == nil && filepath.IsLocal(short) {
			return short
		}
	}
	return full
}

// line writes a line with an indentation, which is also that of its continuation.
func (w *wrapping) line(indent, format string, args ...any) {
	for _, piece := range textwidth.Wrap(indent+fmt.Sprintf(format, args...), w.width) {
		if _, err := fmt.Fprintln(w.out, piece); err != nil && w.err == nil {
			w.err = err
		}
	}
}

func (w *wrapping) leftOut(all []suite.LeftOut) {
	if len(all) > 0 {
		w.line("  ", "left out:")
	}
	for _, l := range suite.Merged(all) {
		l.File = w.path(l.File)
		w.line("    ", "%s", l.Place())
		w.line("      ", "%s: %s", l.What, l.Why)
	}
}

// comment returns the first lines of the file of a case.
func (f *importFlags) comment(c *suite.Case) string {
	lines := []string{
		fmt.Sprintf("Imported from %s, a test case of %s.", c.Dir, c.Format),
		"You may edit this file. To check with it:",
		f.files.usage(c.Scenario),
	}
	if len(c.LeftOut) > 0 {
		lines = append(lines, "Left out:")
	}
	for _, l := range suite.Merged(c.LeftOut) {
		lines = append(lines, fmt.Sprintf("- %s: %s: %s", l.Place(), l.What, l.Why))
	}
	return strings.Join(lines, "\n")
}
