package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"al.essio.dev/pkg/shellescape"

	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/project"
)

// errNotReplayed reports that the user refused to run the commands of a finding.
var errNotReplayed = errors.New("nothing was run")

// confirm shows which commands a replay of the file runs, and asks whether to run them. It
// does not ask about findings that koboshi check saved in this folder.
func confirm(ctx context.Context, file string, saved *report.Saved, f *checkFlags, stdio Stdio) error {
	if ownFinding(file) {
		return nil
	}
	_, err := fmt.Fprintf(stdio.Err, "%s is not in %s of this folder. A replay runs commands that the file names:\n\n%s\n",
		printable(file), defaultFindings, strings.Join(slices.Concat(commandsOf(&saved.Scenario, f.project), programLines(f.run), oldVersionLines(f.upgrade)), "\n"))
	if err != nil {
		return err
	}
	if !atTerminal(stdio.In) {
		return usageError{fmt.Errorf("%s: koboshi cannot ask for permission without a terminal; read the commands above, and add --yes to run them", printable(file))}
	}
	if agreed, err := ask(ctx, stdio.In, stdio.Err, "\nRun them?"); err != nil || agreed {
		return err
	}
	return usageError{errNotReplayed}
}

// ask reports whether the user answers a question with yes.
func ask(ctx context.Context, in io.Reader, out io.Writer, question string) (bool, error) {
	if _, err := fmt.Fprint(out, question+" [y/N] "); err != nil {
		return false, err
	}
	answers := make(chan string, 1)
	go func() { // an interrupt does not end the reading
		answer, _ := bufio.NewReader(in).ReadString('\n')
		answers <- strings.ToLower(strings.TrimSpace(answer))
	}()
	select {
	case answer := <-answers:
		return answer == "y" || answer == "yes", nil
	case <-ctx.Done():
		return false, nil
	}
}

// ownFinding reports whether the file is in the folder of findings of the working directory.
// A symbolic link to another folder does not count.
func ownFinding(file string) bool {
	path, err := filepath.EvalSymlinks(file)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	here, err2 := os.Getwd()
	if err2 == nil {
		here, err2 = filepath.EvalSymlinks(here)
	}
	return err == nil && err2 == nil && filepath.Dir(path) == filepath.Join(here, filepath.FromSlash(defaultFindings))
}

// commandsOf describes the commands that a replay runs, one in each line.
func commandsOf(s *scenario.Scenario, o project.Options) (lines []string) {
	say := func(what, folder string, command []string) {
		lines = append(lines, fmt.Sprintf("  %-12s %s\n  %-12s in %s", what, quoted(command), "", printable(folderName(folder))))
	}
	if len(o.Command) > 0 {
		say("controller", o.Dir, append(append([]string{}, o.Command...), o.Args...))
	} else {
		lines = append(lines, fmt.Sprintf("  %-12s builds and runs the manager of %s", "controller", printable(folderName(o.Dir))))
		for _, more := range []struct {
			name   string
			values []string
		}{{"--main", []string{o.Main}}, {"--args", o.Args}} {
			for _, value := range more.values {
				if value != "" {
					lines = append(lines, fmt.Sprintf("  %-12s with %s=%s", "", more.name, quoted([]string{value})))
				}
			}
		}
	}
	for _, entry := range o.Env {
		name, _, hasValue := strings.Cut(entry, "=")
		from := "the variable of your environment"
		if hasValue {
			from = "set by the file or by --env"
		}
		lines = append(lines, fmt.Sprintf("  %-12s %s (%s)", "environment", printable(name), from))
	}
	for _, e := range s.Endpoints {
		if len(e.Run) > 0 {
			say("endpoint", e.Dir, e.Run)
		}
	}
	for _, step := range s.Steps {
		if len(step.Run) > 0 {
			say("step", s.Dir, step.Run)
		}
	}
	if len(s.Ledger) > 0 {
		say("ledger", s.Dir, s.Ledger)
	}
	return lines
}

func folderName(dir string) string {
	if path, err := filepath.Abs(dir); err == nil {
		return path
	}
	return dir
}

// quoted returns a command as a user would type it in a shell.
func quoted(command []string) string { return printable(shellescape.QuoteCommand(command)) }

// printable returns text that cannot change what a terminal shows.
func printable(text string) string {
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return strconv.Quote(text)
		}
	}
	return text
}

// piped returns an error if the check of a finding read manifests from standard input, but standard
// input is now a terminal.
func piped(file string, o project.Options, terminal bool) error {
	if !terminal || !o.ReadsStdin() {
		return nil
	}
	return fmt.Errorf("%s: the check read manifests from standard input, and a finding does not save them; pipe the same manifests into koboshi check replay --yes %s", printable(file), quoted([]string{file}))
}

// useScenario replaces the scenario of a finding with the scenario of the same name in the
// files, if there are files.
func useScenario(saved *report.Saved, files []string) error {
	if len(files) == 0 {
		return nil
	}
	all, _, err := scenario.LoadAll(files)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Name == saved.Scenario.Name {
			saved.Scenario = *s
			return nil
		}
	}
	return fmt.Errorf("%s: no scenario is named %s, as in the finding; name the file with this scenario", strings.Join(files, ", "), saved.Scenario.Name)
}
