package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"al.essio.dev/pkg/shellescape"
	"github.com/spf13/cobra"

	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/inspect/source"
	"github.com/koboshi-dev/koboshi/internal/inspect/text"
)

// inspectFlags holds the flags of koboshi inspect's questions.
type inspectFlags struct {
	query  inspect.Query
	output string
	follow bool
}

func newInspect(stdio Stdio) *cobra.Command {
	var f inspectFlags
	var r inspectRunFlags
	overview, _ := inspect.Named("overview")
	cmd := &cobra.Command{
		Use:   "inspect SOURCE | -- COMMAND [ARGUMENTS]",
		Short: "Explain why a controller reconciled, and what it did",
		Long: `Explain why a controller reconciled, what it read and wrote, and what changed.

SOURCE is one of:

  FILE     the trace of a session, or a finding of koboshi check
  ADDRESS  the address that a running session prints, with its token
  FOLDER   a project in which koboshi dev is running, such as .

Without a verb, koboshi inspect prints the counts and everything unusual: fields
that change with each write, writes that change nothing, managers that fight over
a field, and refused writes.

With -- COMMAND, koboshi inspect runs a controller behind a recorder: KUBECONFIG
names the recorder, which forwards every request to the cluster. The address that
it prints is a page that shows the session live, and a SOURCE for the verbs. The
controller must use KUBECONFIG, and is the user that the kubeconfig names.

A trace does not contain reconciles. They are taken from the reconcileIDs in the
controller's log, as controller-runtime writes them, and otherwise inferred from
requests. Inferred reconciles are marked. The values of Secrets are never shown.`,
		Example: `  koboshi inspect -- bin/manager --leader-elect=false
  koboshi inspect session.trace.jsonl
  koboshi inspect why .koboshi/findings/HOT-LOOP-life-1f2e3d.json widget/default/a
  koboshi inspect diff session.trace.jsonl deployment/default/web --from 12 --to 31
  koboshi inspect writes http://127.0.0.1:41234/#token=... --follow -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() == 0 {
				if len(args) == 0 {
					return usageError{errNoCommand}
				}
				return nil
			}
			if len(args) != 1 {
				return usageError{fmt.Errorf("%s needs one SOURCE, but got %d arguments; see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() == 0 {
				return r.run(cmd.Context(), args, stdio)
			}
			return f.run(cmd, overview, args, stdio)
		},
	}
	f.common(cmd)
	r.register(cmd)
	for _, q := range inspect.Questions {
		if q.Name != overview.Name {
			cmd.AddCommand(newQuestion(q, stdio))
		}
	}
	cmd.AddCommand(newInspectExport(stdio), newInspectPage(stdio), newInspectReplay(stdio))
	return cmd
}

// newQuestion returns the verb for a question.
func newQuestion(q inspect.Question, stdio Stdio) *cobra.Command {
	var f inspectFlags
	use := q.Name + " SOURCE"
	switch {
	case q.About == inspect.Required:
		use += " KIND/NAME"
	case q.About == inspect.Optional:
		use += " [KIND/NAME]"
	case q.Name == "entry":
		use += " NUMBER"
	}
	cmd := &cobra.Command{
		Use:   use,
		Short: "Show " + q.Short,
		Long:  "Show " + q.Short + ".\n" + details[q.Name] + objectHelp(q) + "\nFor SOURCE, see koboshi inspect --help.",
		Args: func(cmd *cobra.Command, args []string) error {
			least, most := 1, 1
			if q.About == inspect.Required || q.Name == "entry" {
				least, most = 2, 2
			}
			if q.About == inspect.Optional {
				most = 2
			}
			if len(args) < least || len(args) > most {
				return usageError{fmt.Errorf("koboshi inspect %s is the correct form; got %d arguments; see %s --help", use, len(args), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, q, args, stdio) },
	}
	f.common(cmd)
	f.register(cmd, q)
	return cmd
}

// details explains the answers that need more than one line.
var details = map[string]string{
	"why": `
Each reconcile is shown with the events about its object, and about objects that
it owns or mentions, that reached the controller since the previous reconcile.
Any of them can be the cause. If there was none, the most probable other cause is
named. An event that the controller's own write caused is marked.
`,
	"writes": `
For each accepted write, the fields that differ from the previous version are
listed. A write whose version the server did not change is marked.
`,
	"diff": `
Without --to, the last version is taken; without --from, the one before --to.
`,
	"admissions": `
The answers of webhooks are recorded only by sessions that stand between the API
server and the webhooks.
`,
	"timeline": `
Writes of other clients are shown if the session follows the store, and otherwise
when the controller sees their events.
`,
}

func objectHelp(q inspect.Question) string {
	if q.About == inspect.None {
		return ""
	}
	return `
An object is named by KIND/NAME or KIND/NAMESPACE/NAME. The kind can be written
as for kubectl: Deployment, deployments or deployments.apps.
`
}

func (f *inspectFlags) common(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.output, "output", "o", "text", "text or json")
}

func (f *inspectFlags) register(cmd *cobra.Command, q inspect.Question) {
	fs := cmd.Flags()
	has := func(name string) bool { return slices.Contains(q.Parameters, name) }
	if q.About != inspect.None {
		fs.StringVarP(&f.query.Namespace, "namespace", "n", "", "namespace of the object, if KIND/NAME matches several objects")
	}
	if has("limit") {
		fs.IntVar(&f.query.Limit, "limit", 50, "maximum number of results, the most recent ones if they are in order of time; 0 for all")
	}
	if has("after") {
		fs.BoolVarP(&f.follow, "follow", "f", false, "wait for more; with -o json, print one result per line")
	}
	if has("filter") {
		fs.StringVar(&f.query.Filter, "filter", "", "words that the kind, the namespace or the name must contain")
	}
	if has("offset") {
		fs.IntVar(&f.query.Offset, "offset", 0, "number of results to skip")
	}
	if has("from") {
		fs.Int64Var(&f.query.From, "from", 0, "resource version of the earlier state (default: the one before --to)")
	}
	if has("to") {
		fs.Int64Var(&f.query.To, "to", 0, "resource version of the later state (default: the last one)")
	}
	for _, name := range []string{"from", "to"} {
		if flag := fs.Lookup(name); flag != nil {
			flag.DefValue = "0" // so that pflag does not append a default
		}
	}
}

func (f *inspectFlags) run(cmd *cobra.Command, q inspect.Question, args []string, stdio Stdio) error {
	if err := f.checkOutput(); err != nil {
		return err
	}
	if len(args) > 1 && q.Name == "entry" {
		n, err := entryNumber(args[1])
		if err != nil {
			return err
		}
		f.query.Seq = n
	} else if len(args) > 1 {
		f.query.Object = args[1]
	}
	from, err := openSource(args[0])
	if err != nil {
		return usageError{err}
	}
	show := func(answer any) error { return f.show(answer, stdio.Out) }
	if f.follow {
		err := source.Follow(cmd.Context(), from, q, f.query, show)
		if errors.Is(err, source.ErrStill) {
			return usageError{err}
		}
		return err
	}
	answer, err := from.Ask(cmd.Context(), q, f.query)
	if err != nil {
		return err
	}
	return show(answer)
}

// openSource opens a file, an address, or the session in a folder.
func openSource(argument string) (source.Source, error) {
	name, err := sessionIn(argument)
	if err != nil {
		return nil, err
	}
	return source.Open(name)
}

func (f *inspectFlags) show(answer any, out io.Writer) error {
	if f.output == "json" {
		return writeJSON(out, answer, f.follow)
	}
	o := text.Options{}
	if file, isFile := out.(*os.File); isFile && isTerminal(file) {
		o.Color, o.Width = os.Getenv("NO_COLOR") == "", widthOf(file)
	}
	return text.Write(out, answer, o)
}

// writeJSON writes an answer, or each of its results on a line.
func writeJSON(out io.Writer, answer any, lines bool) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	if err := encoder.Encode(answer); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	if lines {
		var results []json.RawMessage
		if err := json.Unmarshal(b.Bytes(), &results); err != nil {
			return fmt.Errorf("writing the answer: %w", err)
		}
		b.Reset()
		for _, r := range results {
			b.Write(append(r, '\n'))
		}
	}
	if _, err := b.WriteTo(out); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

func newInspectExport(stdio Stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "export SOURCE FILE",
		Short: "Write a session to a file that others can inspect",
		Long: `Write a session to a file that others can inspect. The file is a trace; every verb
of koboshi inspect reads it.

The values of Secrets and tokens are replaced by digests, but everything else
that the controller read, wrote and printed is in the file: read it before you
publish it.

For SOURCE, see koboshi inspect --help.`,
		Example: "  koboshi inspect export http://127.0.0.1:41234/#token=... session.trace.jsonl",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{fmt.Errorf("%s takes SOURCE and FILE, but got %d arguments; see %s --help", cmd.CommandPath(), len(args), cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := openSource(args[0])
			if err != nil {
				return usageError{err}
			}
			var b bytes.Buffer
			if err := from.Export(cmd.Context(), &b); err != nil {
				return err
			}
			if err := os.WriteFile(args[1], b.Bytes(), 0o600); err != nil {
				return fmt.Errorf("exporting the session: %w", err)
			}
			_, _ = fmt.Fprintf(stdio.Err, "koboshi: wrote %s; koboshi inspect %s shows it\n", args[1], shellescape.Quote(args[1]))
			return nil
		},
	}
}
