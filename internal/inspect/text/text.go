// Package text shows the answers of a session to people, on a terminal of 80 columns or more.
package text

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/report"
	"github.com/koboshi-dev/koboshi/internal/inspect"
	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Options describes where the text is shown.
type Options struct {
	Color bool
	Width int // in columns; 0 means 80
}

// Write writes the answer to a question.
func Write(w io.Writer, answer any, o Options) error {
	p := &printer{out: bufio.NewWriter(w), color: o.Color, width: min(max(cmp.Or(o.Width, 80), 40), 120)}
	switch a := answer.(type) {
	case *inspect.Overview:
		p.overview(a)
	case *inspect.ObjectList:
		p.objects(a)
	case *[]inspect.Item:
		p.timeline(*a)
	case *[]*inspect.Reconcile:
		p.why(*a)
	case *[]*inspect.Write:
		p.writes(*a)
	case *inspect.Difference:
		p.diff(a)
	case *[]inspect.Version:
		p.versions(*a)
	case **inspect.Node:
		p.tree(*a, "", "")
	case *[]inspect.ConditionChange:
		p.conditions(*a)
	case *[]inspect.Manager:
		p.managers(*a)
	case *[]inspect.Admission:
		p.admissions(*a)
	case *inspect.Admission:
		p.admissions([]inspect.Admission{*a})
	case *inspect.PermissionReport:
		p.permissions(a)
	case *map[string]any, *trace.Entry:
		p.json(a)
	default:
		return fmt.Errorf("an answer of type %T cannot be shown", answer)
	}
	return p.out.Flush()
}

type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "1;31"
	yellow style = "1;33"
	cyan   style = "36"
)

type printer struct {
	out   *bufio.Writer
	color bool
	width int
}

// line writes text after a head. It wraps the text, and indents the lines after the first to
// the width of the head.
func (p *printer) line(s style, head, text string) {
	head, text = report.Inline(head, true), report.Inline(text, false)
	indent := min(len([]rune(head)), p.width/2)
	for i, piece := range wrap(text, p.width-indent) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		// Flush returns any error of the writer.
		_, _ = p.out.WriteString(strings.TrimRight(p.paint(dim, head)+p.paint(s, piece), " ") + "\n")
	}
}

func (p *printer) paint(s style, text string) string {
	if !p.color || s == plain || strings.TrimSpace(text) == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// wrap breaks a text at spaces, and longer words anywhere.
func wrap(text string, width int) (lines []string) {
	width = max(width, 10)
	line := []rune{}
	for word := range strings.FieldsSeq(text) {
		runes := []rune(word)
		if len(line) > 0 && len(line)+1+len(runes) > width {
			lines, line = append(lines, string(line)), nil
		}
		if len(line) > 0 {
			line = append(line, ' ')
		}
		for line = append(line, runes...); len(line) > width; line = line[width:] {
			lines = append(lines, string(line[:width]))
		}
	}
	return append(lines, string(line))
}

// at returns the time at the beginning of a line.
func at(d time.Duration) string { return fmt.Sprintf("%10.3f s  ", d.Seconds()) }

func took(d time.Duration) string {
	if d < 10*time.Millisecond {
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

func (p *printer) nothing(what string) { p.line(dim, "", what) }

func (p *printer) overview(o *inspect.Overview) {
	if o.Subject != "" {
		p.line(bold, "", o.Subject)
	}
	counts := fmt.Sprintf("%s, %s, %s (%d changed nothing, %d failed), %s, %s in %s",
		noun.Count(o.Objects, "object"), noun.Count(o.Reconciles, "reconcile"), noun.Count(o.Writes, "write"), o.NoOps, o.Failed,
		noun.Count(o.Admissions, "webhook call"), noun.Count(o.Errors, "logged error"), took(o.Last))
	p.line(plain, "", counts)
	if len(o.Notices) > 0 {
		p.line(plain, "", "")
	}
	for _, n := range o.Notices {
		if n.Level == inspect.Warning {
			p.line(yellow, "! ", n.Text)
		} else {
			p.line(plain, "- ", n.Text)
		}
	}
	if o.LastError != "" {
		p.line(red, "last error: ", o.LastError)
	}
	if len(o.Instances) > 0 {
		p.line(plain, "", "")
	}
	for _, i := range o.Instances {
		p.line(plain, at(i.Started), i.Name+" "+ended(i))
	}
}

func ended(i *inspect.Instance) string {
	switch {
	case i.Ended == 0:
		return fmt.Sprintf("started (process %d)", i.PID)
	case i.How == "exited":
		return fmt.Sprintf("started, and exited with code %d at %.3f s", i.ExitCode, i.Ended.Seconds())
	}
	return fmt.Sprintf("started, and was %s at %.3f s", i.How, i.Ended.Seconds())
}

func (p *printer) objects(l *inspect.ObjectList) {
	for _, row := range l.Objects {
		var facts []string
		switch {
		case row.Gone:
			facts = append(facts, "deleted")
		case row.Summary != "":
			facts = append(facts, row.Summary)
		}
		if row.Writes > 0 {
			facts = append(facts, noun.Count(row.Writes, "write"))
		}
		if row.Notices > 0 {
			facts = append(facts, noun.Count(row.Notices, "notice"))
		}
		text := row.Object.String()
		if len(facts) > 0 {
			text += "  (" + strings.Join(facts, ", ") + ")"
		}
		p.line(plain, "", text)
	}
	if len(l.Objects) < l.Total {
		p.nothing(fmt.Sprintf("%d of %s; use --limit and --filter for others", len(l.Objects), noun.Count(l.Total, "object")))
	}
}

func (p *printer) timeline(items []inspect.Item) {
	if len(items) == 0 {
		p.nothing("nothing happened to the object")
	}
	for _, i := range items {
		text := i.Text
		if i.Kind == "line" || i.Kind == "event" {
			text = i.Kind + ": " + text
		}
		p.line(bad(i.Bad), at(i.At), text+versions(0, i.ResourceVersion)+changed(i.Changed, i.Manager))
	}
}

func bad(is bool) style {
	if is {
		return red
	}
	return plain
}

func versions(from, to int64) string {
	switch {
	case to == 0:
		return ""
	case from == 0 || from == to:
		return fmt.Sprintf(", version %d", to)
	}
	return fmt.Sprintf(", version %d → %d", from, to)
}

// mostFields limits the number of fields in a sentence.
const mostFields = 6

func changed(fields []string, manager string) string {
	if len(fields) == 0 {
		return ""
	}
	text := ", changed " + strings.Join(fields[:min(len(fields), mostFields)], ", ")
	if more := len(fields) - mostFields; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if manager != "" {
		text += ", by " + manager
	}
	return text
}

func (p *printer) why(all []*inspect.Reconcile) {
	if len(all) == 0 {
		p.nothing("no reconcile is known")
	}
	for n, r := range all {
		if n > 0 {
			p.line(plain, "", "")
		}
		name := "reconcile " + r.ID
		if strings.HasPrefix(r.ID, "~") {
			name = "an inferred reconcile (" + r.ID + ")"
		}
		p.line(bold, at(r.Began), fmt.Sprintf("%s: %s, %s, %s", r.Object.Short(), name, r.Instance, took(r.Ended-r.Began)))
		p.causes(r)
		if r.Queue != nil {
			p.line(plain, strings.Repeat(" ", len(at(0)))+"queue    ", r.Queue.String())
		}
		for _, w := range r.Writes {
			p.line(bad(w.Failed), at(w.At)+"wrote    ", written(w))
		}
		if len(r.Writes) == 0 {
			p.line(plain, strings.Repeat(" ", len(at(0)))+"wrote    ", "nothing")
		}
		if r.Error != "" {
			p.line(red, at(r.Ended)+"error    ", r.Error)
		}
		if r.Result != "" {
			p.line(plain, at(r.Ended)+"result   ", r.Result)
		}
		if len(r.Inferred) > 0 {
			p.line(dim, strings.Repeat(" ", len(at(0)))+"inferred ", strings.Join(r.Inferred, ", "))
		}
	}
}

func (p *printer) causes(r *inspect.Reconcile) {
	if r.Why != "" {
		p.line(plain, strings.Repeat(" ", len(at(0)))+"because  ", r.Why)
	}
	if r.Dropped > 0 {
		p.line(plain, strings.Repeat(" ", len(at(0)))+"because  ", fmt.Sprintf("of %d earlier events, which are not shown", r.Dropped))
	}
	for _, c := range r.Causes {
		object := c.Object.Short()
		switch {
		case c.Relation == "mapped":
			object += " (mapped by " + c.Handler + ")"
		case c.Relation != "itself":
			object += " (" + c.Relation + ")"
		}
		text := object + " was " + strings.ToLower(c.Type) + versions(0, c.ResourceVersion) + changed(c.Changed, c.Manager)
		if c.Own != "" {
			text += ", by the controller itself in " + c.Own
		}
		p.line(cyan, at(c.At)+"because  ", text)
	}
}

func written(w *inspect.Write) string {
	verb := w.Verb
	if w.Subresource != "" {
		verb += " " + w.Subresource
	}
	text := fmt.Sprintf("%s %s: %d", verb, w.Object.Short(), w.Code)
	if w.Code == 0 {
		text = fmt.Sprintf("%s %s: no answer", verb, w.Object.Short())
	}
	if w.Reason != "" {
		text += " " + w.Reason
	}
	if w.Message != "" {
		text += ": " + w.Message
	}
	switch {
	case w.NoOp:
		return text + ", changed nothing"
	case w.DryRun:
		return text + ", dry run"
	}
	return text + versions(w.Before, w.After) + changed(w.Changed, "")
}

func (p *printer) writes(all []*inspect.Write) {
	if len(all) == 0 {
		p.nothing("the controller wrote nothing")
	}
	for _, w := range all {
		p.line(bad(w.Failed), at(w.At), written(w))
	}
}

func (p *printer) diff(d *inspect.Difference) {
	from := fmt.Sprint("version ", d.From)
	if d.From == 0 {
		from = "nothing"
	}
	p.line(bold, "", fmt.Sprintf("%s: %s → version %d", d.Object.Short(), from, d.To))
	server := 0
	for _, c := range d.Changes {
		if c.Server {
			server++
			continue
		}
		p.change("", c)
	}
	switch {
	case server == len(d.Changes) && server > 0:
		p.nothing("only fields that the server maintains differ")
	case len(d.Changes) == 0:
		p.nothing("nothing differs")
	}
}

func (p *printer) change(indent string, c inspect.FieldChange) {
	switch {
	case c.Before == nil:
		p.line(plain, indent+"+ ", c.Path+": "+string(c.After))
	case c.After == nil:
		p.line(plain, indent+"- ", c.Path+": "+string(c.Before))
	default:
		p.line(plain, indent+"~ ", c.Path+": "+string(c.Before)+" → "+string(c.After))
	}
}

func (p *printer) versions(all []inspect.Version) {
	for _, v := range all {
		text := fmt.Sprint("version ", v.ResourceVersion)
		if v.Deleted {
			text += ", deleted"
		}
		p.line(plain, at(v.At), text)
	}
}

func (p *printer) tree(n *inspect.Node, first, rest string) {
	if n == nil {
		return
	}
	text := n.Object.Short()
	for _, fact := range []string{n.Summary, when(n.Gone, "deleted"), when(n.Deleting, "being deleted, waits for "+strings.Join(n.Finalize, ", "))} {
		if fact != "" {
			text += "  " + fact
		}
	}
	s := plain
	if n.Asked {
		s = bold
	}
	p.line(s, first, text)
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			p.tree(child, rest+"└─ ", rest+"   ")
		} else {
			p.tree(child, rest+"├─ ", rest+"│  ")
		}
	}
}

func when(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

func (p *printer) conditions(all []inspect.ConditionChange) {
	if len(all) == 0 {
		p.nothing("the object has no conditions")
	}
	for _, c := range all {
		text := fmt.Sprintf("%s: %s → %s", c.Type, cmp.Or(c.From, "none"), cmp.Or(c.To, "none"))
		if detail := strings.Trim(c.Reason+": "+c.Message, ": "); detail != "" {
			text += " (" + detail + ")"
		}
		if c.Manager != "" {
			text += ", by " + c.Manager
		}
		p.line(plain, at(c.At), text+versions(0, c.ResourceVersion))
	}
}

func (p *printer) managers(all []inspect.Manager) {
	if len(all) == 0 {
		p.nothing("no field managers are known")
	}
	for _, m := range all {
		text := m.Name + " (" + m.Operation
		if m.Subresource != "" {
			text += " of " + m.Subresource
		}
		p.line(bold, "", text+", "+m.Time+")")
		p.line(plain, "  ", strings.Join(m.Fields, ", "))
	}
}

func (p *printer) admissions(all []inspect.Admission) {
	if len(all) == 0 {
		p.nothing("no webhook was called")
	}
	for _, a := range all {
		text := a.Text()
		for _, object := range a.Objects[:min(len(a.Objects), mostFields)] {
			text += ", " + object.Short()
		}
		if a.User != "" {
			text += ", by " + a.User
		}
		text += ", " + took(a.Took)
		if a.Held > 0 {
			text += " (of which " + took(a.Held) + " without a process)"
		}
		text += fmt.Sprintf(", entry %d", a.Seq)
		failed := a.Error != "" || a.Allowed != nil && !*a.Allowed
		p.line(bad(failed), at(a.At), text)
		p.patch(a.Patch)
		for _, warning := range a.Warnings {
			p.line(yellow, strings.Repeat(" ", len(at(0))), "warning: "+warning)
		}
		if a.Replay != nil {
			for _, c := range a.Replay.Differences {
				p.change(strings.Repeat(" ", len(at(0))), c)
			}
		}
	}
}

func (p *printer) patch(patch json.RawMessage) {
	var ops []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if len(patch) == 0 || json.Unmarshal(patch, &ops) != nil {
		return
	}
	for _, op := range ops {
		p.line(plain, strings.Repeat(" ", len(at(0))), strings.TrimSpace(op.Op+" "+op.Path+" "+string(op.Value)))
	}
}

func (p *printer) permissions(r *inspect.PermissionReport) {
	p.used(r.Used)
	if r.Account != "" {
		p.line(plain, "", "")
		p.line(bold, "", "granted to "+r.Account+", but not used in this session:")
		p.unused(r.Unused)
	}
	for _, role := range r.Unknown {
		p.line(yellow, "  ", "role "+role+" is bound too, but its rules are not known")
	}
	p.line(plain, "", "")
	p.nothing(r.Note)
}

func (p *printer) used(all []*inspect.Use) {
	if len(all) == 0 {
		p.nothing("the controller made no request")
	}
	same := func(a, b *inspect.Use) bool {
		return a.Group == b.Group && a.Resource == b.Resource && a.Path == b.Path
	}
	for group := range grouped(all, same) {
		texts, refused := []string(nil), []*inspect.Use(nil)
		for _, u := range group {
			texts = append(texts, fmt.Sprintf("%s (%d)", u.Verb, u.Count))
			if u.Refused > 0 {
				refused = append(refused, u)
			}
		}
		p.line(plain, "", resource(group[0].Permission)+": "+strings.Join(texts, ", "))
		for _, u := range refused {
			p.line(red, "  ", fmt.Sprintf("%s was refused %d times: %s", u.Verb, u.Refused, u.Message))
		}
	}
}

func (p *printer) unused(all []inspect.Unused) {
	if len(all) == 0 {
		p.line(plain, "  ", "nothing")
	}
	sameRole := func(a, b inspect.Unused) bool {
		return a.Role == b.Role && a.Namespace == b.Namespace && a.File == b.File
	}
	sameResource := func(a, b inspect.Unused) bool {
		return a.Group == b.Group && a.Resource == b.Resource && a.Path == b.Path && slices.Equal(a.Names, b.Names) && a.Unseen == b.Unseen
	}
	for role := range grouped(all, sameRole) {
		name := role[0].Role
		if role[0].Namespace != "" {
			name += " in namespace " + role[0].Namespace
		}
		if role[0].File != "" {
			name += " (" + role[0].File + ")"
		}
		p.line(plain, "  ", name)
		for group := range grouped(role, sameResource) {
			var verbs []string
			for _, u := range group {
				verbs = append(verbs, u.Verb)
			}
			text := resource(group[0].Permission) + ": " + strings.Join(verbs, ", ")
			if len(group[0].Names) > 0 {
				text += " of " + strings.Join(group[0].Names, ", ")
			}
			if group[0].Unseen != "" {
				text += " (perhaps needed: " + group[0].Unseen + ")"
			}
			p.line(plain, "    ", text)
		}
	}
}

// grouped splits the elements into runs of equal neighbors.
func grouped[T any](all []T, same func(a, b T) bool) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(all) > 0 {
			n := slices.IndexFunc(all, func(x T) bool { return !same(all[0], x) })
			if n < 0 {
				n = len(all)
			}
			if !yield(all[:n]) {
				return
			}
			all = all[n:]
		}
	}
}

func resource(p inspect.Permission) string {
	if p.Path != "" {
		return p.Path
	}
	name, sub, found := strings.Cut(p.Resource, "/")
	if p.Group != "" {
		name += "." + p.Group
	}
	if found {
		name += "/" + sub
	}
	return name
}

func (p *printer) json(v any) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		_, _ = p.out.WriteString(report.Inline(line, true) + "\n")
	}
}
