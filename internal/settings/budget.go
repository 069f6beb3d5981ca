package settings

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/koboshi-dev/koboshi/internal/strictyaml"
)

// Budget maps the name of a scenario to numbers of requests, as opinions.Requests does.
type Budget = map[string]map[string]int32

// UpdateBudget writes the budgets of some scenarios to a file, which is created if it does not exist.
// Nothing else in the file changes: comments, blank lines, other settings, and the budgets of other
// scenarios stay as they are. The file is replaced as a whole, or not at all.
func UpdateBudget(path string, budget Budget) error {
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading settings: %w", err)
	}
	after, err := withBudget(path, before, budget)
	if err != nil {
		return err
	}
	if bytes.Equal(before, after) {
		return nil
	}
	return replace(path, after)
}

// replace replaces a file, or the file to which a symbolic link leads.
func replace(path string, data []byte) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing settings: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
			err = fmt.Errorf("writing settings: %w", err)
		}
	}()
	_, err = file.Write(data)
	if err = cmp.Or(err, file.Chmod(mode), file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// withBudget returns the content of the file with new budgets. It edits lines, because an encoder would
// lose blank lines and the layout of the person who wrote the file. The result is read again: it must
// have exactly the new budgets, and otherwise the same settings.
func withBudget(path string, before []byte, budget Budget) ([]byte, error) {
	old, err := Parse(path, before)
	if err != nil {
		return nil, err
	}
	documents, _, err := strictyaml.Documents(before)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	e := newEditor(string(before))
	var root *yaml.Node
	if len(documents) > 0 {
		root = documents[0]
	}
	e.update(root, budget)
	after := e.text()

	want := old.Check
	want.Requests.Budget = merged(old.Check.Requests.Budget, budget)
	got, err := Parse(path, []byte(after))
	if err != nil || !reflect.DeepEqual(got.Check, want) {
		return nil, fmt.Errorf("%s has a form that koboshi cannot edit without the risk of losing something; write check, requests and budget as indented lines, or add these lines:\n%s",
			path, strings.Join(fresh(budget), "\n"))
	}
	return []byte(after), nil
}

// merged returns the old budgets with the new ones in place of those of the same scenarios.
func merged(old, budget Budget) Budget {
	all := maps.Clone(old)
	if all == nil {
		all = Budget{}
	}
	maps.Copy(all, budget)
	if len(all) == 0 {
		return old
	}
	return all
}

// fresh returns the lines of a file that has only a budget.
func fresh(budget Budget) []string {
	return slices.Concat([]string{"check:"}, indented("  ", section(budget)))
}

func section(budget Budget) []string {
	return slices.Concat([]string{"requests:"}, indented("  ", budgets(budget)))
}

func budgets(budget Budget) []string {
	lines := []string{"# The requests that each scenario needs without a fault: koboshi check --update-budget", "budget:"}
	for _, scenario := range slices.Sorted(maps.Keys(budget)) {
		lines = append(lines, indented("  ", of(scenario, budget[scenario]))...)
	}
	return lines
}

// of returns the lines of one scenario.
func of(scenario string, numbers map[string]int32) []string {
	if len(numbers) == 0 {
		return []string{key(scenario) + ": {}"}
	}
	lines := []string{key(scenario) + ":"}
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		lines = append(lines, "  "+row(name, numbers[name]))
	}
	return lines
}

func row(name string, n int32) string { return key(name) + ": " + strconv.Itoa(int(n)) }

// key returns a key as YAML, with quotes if it needs them.
func key(name string) string {
	data, err := yaml.Marshal(name)
	if err != nil || strings.Count(string(data), "\n") != 1 {
		return strconv.Quote(name)
	}
	return strings.TrimSpace(string(data))
}

func indented(by string, lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		out = append(out, by+line)
	}
	return out
}

// editor changes lines of a YAML file. Lines are numbered from 1, as in a node.
type editor struct {
	lines   []string // with their ends
	end     string   // the end of a line
	added   map[int][]string
	removed map[int]bool
	changed map[int]string
}

func newEditor(text string) *editor {
	e := &editor{end: "\n", added: map[int][]string{}, removed: map[int]bool{}, changed: map[int]string{}}
	if strings.Contains(text, "\r\n") {
		e.end = "\r\n"
	}
	e.lines = slices.Collect(strings.Lines(text))
	return e
}

// text returns the text with all changes.
func (e *editor) text() string {
	var out strings.Builder
	add := func(lines []string) {
		for _, line := range lines {
			if text := out.String(); text != "" && !strings.HasSuffix(text, "\n") {
				out.WriteString(e.end)
			}
			out.WriteString(line + e.end)
		}
	}
	add(e.added[0])
	for i, line := range e.lines {
		n := i + 1
		if text, has := e.changed[n]; has {
			line = text
		}
		if !e.removed[n] {
			out.WriteString(line)
		}
		add(e.added[n])
	}
	return out.String()
}

// update adds the budgets below the deepest part of check.requests.budget that exists.
func (e *editor) update(root *yaml.Node, budget Budget) {
	if len(budget) == 0 {
		return
	}
	at, value := 0, root
	missing := []func(Budget) []string{fresh, section, budgets}
	for i, name := range []string{"check", "requests", "budget"} {
		k, v := entry(value, name)
		if k == nil {
			e.insert(at, value, missing[i](budget))
			return
		}
		at, value = k.Line, v
	}
	e.scenarios(at, value, budget)
}

// scenarios changes the budgets of scenarios. Their mapping begins after a line.
func (e *editor) scenarios(at int, mapping *yaml.Node, budget Budget) {
	var added []string
	for _, scenario := range slices.Sorted(maps.Keys(budget)) {
		k, v := entry(mapping, scenario)
		if k == nil {
			added = append(added, of(scenario, budget[scenario])...)
			continue
		}
		e.rows(k, v, budget[scenario])
	}
	if len(added) > 0 {
		e.insert(at, mapping, added)
	}
}

// rows changes the numbers of one scenario.
func (e *editor) rows(name, mapping *yaml.Node, numbers map[string]int32) {
	if len(mapping.Content) == 0 || len(numbers) == 0 { // one of them is written in braces
		e.rewrite(name, mapping, numbers)
		return
	}
	var added []string
	for _, what := range slices.Sorted(maps.Keys(numbers)) {
		k, v := entry(mapping, what)
		switch {
		case k == nil:
			added = append(added, row(what, numbers[what]))
		case v.Value != strconv.Itoa(int(numbers[what])):
			e.number(v, numbers[what])
		}
	}
	if len(added) > 0 {
		e.insert(name.Line, mapping, added)
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if _, needed := numbers[mapping.Content[i].Value]; !needed {
			e.removed[mapping.Content[i].Line] = true
		}
	}
}

// rewrite replaces all lines of one scenario.
func (e *editor) rewrite(name, mapping *yaml.Node, numbers map[string]int32) {
	if len(mapping.Content) == 0 && len(numbers) == 0 {
		return
	}
	end := name.Line
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		end = max(end, mapping.Content[i+1].Line)
	}
	for n := name.Line; n <= end; n++ {
		e.removed[n] = true
	}
	e.added[end] = append(indented(strings.Repeat(" ", name.Column-1), of(name.Value, numbers)), e.added[end]...)
}

// number replaces a number in its line.
func (e *editor) number(v *yaml.Node, n int32) {
	line, at := e.lines[v.Line-1], v.Column-1
	if changed, has := e.changed[v.Line]; has {
		line = changed
	}
	if runes := []rune(line); at <= len(runes) {
		rest, found := strings.CutPrefix(string(runes[at:]), v.Value)
		if found {
			e.changed[v.Line] = string(runes[:at]) + strconv.Itoa(int(n)) + rest
		}
	}
}

// insert adds lines at the end of a mapping, with the indentation of its keys. If there is no mapping,
// the lines begin the content of the file. A mapping in braces has no end that is a line; withBudget
// refuses the result.
func (e *editor) insert(at int, mapping *yaml.Node, lines []string) {
	switch {
	case mapping == nil:
		at = len(e.lines) // there may be comments
	case len(mapping.Content) > 0:
		at = e.endOf(mapping)
		lines = indented(strings.Repeat(" ", mapping.Content[0].Column-1), lines)
	}
	e.added[at] = append(e.added[at], lines...)
}

// endOf returns the last line of a mapping, including the comments at its end that are indented like
// its keys.
func (e *editor) endOf(mapping *yaml.Node) int {
	key := mapping.Content[len(mapping.Content)-2]
	end := key.Line
	for n := key.Line + 1; n <= len(e.lines); n++ {
		line := e.lines[n-1]
		text := strings.TrimSpace(line)
		inside := len(line)-len(strings.TrimLeft(line, " ")) >= key.Column-1
		switch {
		case text == "":
		case !inside && !strings.HasPrefix(text, "#"), strings.HasPrefix(line, "---"), strings.HasPrefix(line, "..."):
			return end
		case inside:
			end = n
		}
	}
	return end
}

// entry returns the key and the value of a mapping, or nil.
func entry(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}
