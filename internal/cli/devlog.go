package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/koboshi-dev/koboshi/internal/devloop"
	"github.com/koboshi-dev/koboshi/internal/devloop/logs"
)

// logForms maps the values of --log.
var logForms = map[string]logs.Form{"short": logs.Short, "full": logs.Full, "plain": logs.Plain}

// checkLogForm validates the value of --log.
func checkLogForm(form string) error {
	if _, ok := logForms[form]; !ok && form != "" {
		return fmt.Errorf("--log is %q; use short, full or plain, or omit it", form)
	}
	return nil
}

// managerLog returns the printer of the manager's log. Without --log, only a terminal gets short
// lines, because a program that reads the log expects what the manager prints.
func managerLog(out io.Writer, form string) *logs.Printer {
	o := logs.Options{Form: logs.Plain, Unfold: "--log=full"}
	if file, ok := out.(*os.File); ok && isTerminal(file) {
		o.Form, o.Color = logs.Short, os.Getenv("NO_COLOR") == ""
		o.Width = func() int { return widthOf(file) }
	}
	if form != "" {
		o.Form = logForms[form]
	}
	return logs.New(out, o)
}

// Round implements session.Observer. The line of a round also reports the errors that the manager
// has logged since the previous round.
func (v *devView) Round(r devloop.Report) {
	text := r.String()
	if logged := v.log.Recent(); logged.Errors > 0 {
		since := "the start"
		if v.later {
			since = "the previous round"
		}
		text += fmt.Sprintf("; %s logged since %s", logged, since)
	}
	v.later = true
	v.Note(text)
	if v.check != nil {
		v.check.End(r.Edit.Files, r.Err == nil)
	}
}

// Starting implements session.Observer.
func (v *devView) Starting() {
	if v.check != nil {
		v.check.Begin()
	}
}

// mostMessages is the number of different errors that the summary of a session lists.
const mostMessages = 5

// summarize reports the errors that the manager has logged in the whole session.
func (v *devView) summarize() {
	logged := v.log.Total()
	if logged.Errors == 0 {
		return
	}
	v.Note(fmt.Sprintf("the manager logged %s in this session", logged))
	for i, m := range logged.Messages {
		if i == mostMessages {
			v.Text(fmt.Sprintf("  and %d other messages", len(logged.Messages)-i))
			return
		}
		v.Text(fmt.Sprintf("  %d × %s", m.Count, m.Text))
	}
}
