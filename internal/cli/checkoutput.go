package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/koboshi-dev/koboshi/internal/check"
	"github.com/koboshi-dev/koboshi/internal/check/report"
)

// An output is a format of the report and the file to write it to; an empty file name
// means standard output.
type output struct{ form, file string }

type outputs []output

var forms = []string{"text", "json", "junit", "sarif", "codequality", "html", "markdown"}

// outputUsage describes -o.
const outputUsage = "report format: text, json, junit, sarif, codequality, html or markdown; append =FILE to write the report to a file; may be repeated"

// parseOutputs parses the values of -o. The text report goes to standard output
// unless another format is written there.
func parseOutputs(given []string) (outputs, error) {
	var all outputs
	onStdout := 0
	for _, text := range given {
		form, file, toFile := strings.Cut(text, "=")
		switch {
		case !slices.Contains(forms, form):
			return nil, fmt.Errorf("-o %s: unknown format %q; choose from %s", text, form, strings.Join(forms, ", "))
		case toFile && file == "":
			return nil, fmt.Errorf("-o %s: there is no file name after =; add a name, or omit =", text)
		case toFile:
			path, err := writableFile("-o "+form, file)
			if err != nil {
				return nil, err
			}
			file = path
		case form == "html":
			return nil, errors.New("-o html: an HTML page cannot be shown in a terminal; name a file, such as -o html=report.html")
		default:
			onStdout++
		}
		all = append(all, output{form, file})
	}
	if onStdout > 1 {
		return nil, errors.New("-o: only one format can go to standard output; write the others to files, such as -o junit=report.xml")
	}
	if onStdout == 0 {
		all = append(all, output{form: "text"})
	}
	return all, nil
}

func (all outputs) write(result *check.Result, verbose bool, stdio Stdio) error {
	for _, o := range all {
		if err := o.write(result, verbose, all.whole(), stdio); err != nil {
			return fmt.Errorf("writing the report as %s: %w", o.form, err)
		}
	}
	return nil
}

// whole returns a sentence for the readers of a comment that was cut. It says where the whole report
// is.
func (all outputs) whole() string {
	for _, form := range []string{"html", "text", "json"} {
		for _, o := range all {
			if o.form == form && o.file != "" {
				return "The whole report is in " + filepath.Base(o.file) + "."
			}
		}
	}
	if slices.Contains(all, output{form: "text"}) {
		return "The whole report is in the log of the check."
	}
	return "To get the whole report, add -o html=FILE to the check."
}

// write writes the report in one format. whole tells where the whole report is.
func (o output) write(result *check.Result, verbose bool, whole string, stdio Stdio) (err error) {
	w := stdio.Out
	if o.file != "" {
		// A report quotes what the controller wrote and printed, so other users must not read it.
		file, err := os.OpenFile(o.file, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		w = file
	}
	r := result.Report
	switch o.form {
	case "json":
		return r.WriteJSON(w)
	case "junit":
		return r.WriteJUnit(w)
	case "sarif":
		return r.WriteSARIF(w, report.SARIFOptions{})
	case "codequality":
		return r.WriteCodeQuality(w, report.SARIFOptions{})
	case "html":
		return r.WriteHTML(w, result.Traces)
	case "markdown":
		return r.WriteMarkdown(w, report.MarkdownOptions{Whole: whole})
	}
	return r.WriteText(w, textOptions(w, verbose))
}

func textOptions(w io.Writer, verbose bool) report.TextOptions {
	o := report.TextOptions{Width: 80, Verbose: verbose}
	if file, ok := w.(*os.File); ok && isTerminal(file) {
		o.Color, o.Width = os.Getenv("NO_COLOR") == "", widthOf(file)
	}
	return o
}

// widthOf returns the width of a terminal in columns, or 80 for any other file.
func widthOf(file *os.File) int {
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		return width
	}
	return 80
}

func isTerminal(file *os.File) bool { return term.IsTerminal(int(file.Fd())) }

// atTerminal reports whether the input comes from a terminal, at which a person may be typing.
func atTerminal(in io.Reader) bool {
	file, ok := in.(*os.File)
	return ok && isTerminal(file)
}

// writePlan prints the faults that the check would inject.
func writePlan(stdio Stdio, result *check.Result) error {
	for _, p := range result.Plan {
		if _, err := fmt.Fprintln(stdio.Out, p); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(stdio.Out, "%d faults to inject; %d other faults are skipped\n", len(result.Plan), len(result.Skipped))
	return err
}
