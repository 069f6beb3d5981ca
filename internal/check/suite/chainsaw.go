package suite

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

const chainsawGroup = "chainsaw.kyverno.io/"

// chainsawSettings holds what a Configuration says about all tests.
type chainsawSettings struct {
	file      string // the name of the files with tests, without the extension
	namespace string
	timeout   time.Duration
}

// chainsaw reads the tests of chainsaw in a folder.
func (s *Suite) chainsaw(r *reader, dir string) error {
	settings := s.chainsawSettings(r, dir)
	folders, err := r.folders(dir)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		for _, ext := range []string{".yaml", ".yml"} {
			file := path.Join(folder, settings.file+ext)
			if info, err := fs.Stat(r.fsys, file); err != nil || info.IsDir() {
				continue
			}
			docs, err := r.documents(file)
			if err != nil {
				s.LeftOut = append(s.LeftOut, unread(file, err))
				continue
			}
			for _, doc := range docs {
				s.chainsawDocument(r, settings, folder, doc)
			}
		}
	}
	return nil
}

func (s *Suite) chainsawDocument(r *reader, settings chainsawSettings, folder string, doc document) {
	version, kind := doc.text("apiVersion"), doc.text("kind")
	switch {
	case kind != "Test" || !strings.HasPrefix(version, chainsawGroup):
		s.LeftOut = append(s.LeftOut, doc.left("", cmp.Or(kind, "a document"), "it is not a test of chainsaw"))
	case version != chainsawGroup+"v1alpha1":
		s.LeftOut = append(s.LeftOut, doc.left("apiVersion", "the test", "version %s is not supported", version))
	case doc.child("spec").value["skip"] == true:
		s.LeftOut = append(s.LeftOut, doc.left("spec.skip", "the test", "chainsaw skips it"))
	default:
		s.Cases = append(s.Cases, settings.read(r, folder, doc))
	}
}

// chainsawSettings reads .chainsaw.yaml.
func (s *Suite) chainsawSettings(r *reader, dir string) chainsawSettings {
	out := chainsawSettings{file: "chainsaw-test"}
	file := path.Join(dir, ".chainsaw.yaml")
	if _, err := fs.Stat(r.fsys, file); err != nil {
		return out
	}
	docs, err := r.documents(file)
	if err != nil {
		s.LeftOut = append(s.LeftOut, unread(file, err))
		return out
	}
	for _, doc := range docs {
		if doc.text("kind") != "Configuration" || !strings.HasPrefix(doc.text("apiVersion"), chainsawGroup) {
			continue
		}
		spec := doc.child("spec")
		// Version v1alpha2 has the same settings in sections.
		out.namespace = cmp.Or(spec.text("namespace"), spec.child("namespace").text("name"))
		name := cmp.Or(spec.text("testFile"), spec.child("discovery").text("testFile"), out.file)
		if name = strings.TrimSuffix(name, path.Ext(name)); name == path.Base(name) {
			out.file = name
		}
		out.timeout = longestTimeout(spec)
	}
	return out
}

// longestTimeout returns the longest time that a mapping with timeouts allows for an effect.
func longestTimeout(spec document) (longest time.Duration) {
	timeouts := spec.child("timeouts")
	for _, key := range []string{"apply", "assert", "delete", "error"} {
		longest = max(longest, duration(timeouts.text(key)))
	}
	return longest
}

func duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0
	}
	return d
}

// chainsawTest reads one test.
type chainsawTest struct {
	r           *reader
	d           *draft
	dir         string
	propagation string
}

func (settings chainsawSettings) read(r *reader, folder string, doc document) *Case {
	spec := doc.child("spec")
	name := text(doc.value, "metadata", "name")
	namespace := cmp.Or(spec.text("namespace"), settings.namespace)
	t := &chainsawTest{r: r, dir: folder, d: newDraft(Chainsaw, folder, cmp.Or(name, path.Base(folder)), namespace)}
	t.propagation = spec.text("deletionPropagationPolicy")
	t.d.allow(settings.timeout)
	t.d.allow(longestTimeout(spec))
	for _, key := range spec.keys() {
		switch key {
		case "bindings", "scenarios":
			t.d.leave(spec.left(key, key, "expressions are not supported"))
		case "namespaceTemplate":
			t.d.leave(spec.left(key, key, "namespaces are created without it"))
		case "catch":
			t.d.leave(spec.left(key, key, "it only collects information for a failed test"))
		}
	}
	clusters := spec.has("cluster") || spec.has("clusters")
	for i, step := range spec.children("steps") {
		if !t.d.begin(cmp.Or(step.text("name"), fmt.Sprintf("step-%d", i+1))) {
			continue
		}
		if clusters {
			t.d.stop(spec.left("cluster", "cluster", "a check has only one cluster"))
			t.d.rest = true
			continue
		}
		t.step(step)
	}
	return t.d.finish(Chainsaw, folder, doc.file)
}

// step reads one step.
func (t *chainsawTest) step(step document) {
	t.d.allow(longestTimeout(step))
	for _, key := range step.keys() {
		switch key {
		case "bindings":
			t.d.leave(step.left(key, key, "expressions are not supported"))
		case "catch":
			t.d.leave(step.left(key, key, "it only collects information for a failed test"))
		case "cleanup":
			t.d.leave(step.left(key, key, "a check resets the cluster after each run"))
		case "use":
			t.d.stop(step.left(key, "use of a template", "templates of steps are not supported"))
		case "cluster", "clusters":
			t.d.stop(step.left(key, key, "a check has only one cluster"))
		}
	}
	for _, operation := range step.children("try") {
		if !t.d.following() {
			break
		}
		t.operation(operation, cmp.Or(step.text("deletionPropagationPolicy"), t.propagation))
	}
	t.finally(step)
}

// finally leaves out the operations that run after those of the step.
func (t *chainsawTest) finally(step document) {
	for i, operation := range step.children("finally") {
		at := step.left(fmt.Sprintf("finally[%d]", i), "finally", "it is not run")
		script := cmp.Or(operation.child("script").text("content"), commandLine(operation.child("command")))
		if t.d.ended == "" && (operation.has("delete") || writes(script) != "") {
			at.Why = "it is not run, and may change the cluster"
			t.d.stop(at)
			continue
		}
		t.d.leave(at)
	}
}

// operations lists the operations of chainsaw.
var operations = []string{
	"apply", "assert", "command", "create", "delete", "describe", "error", "events", "get", "patch", "podLogs", "proxy", "script",
	"sleep", "update", "wait",
}

func (t *chainsawTest) operation(all document, propagation string) {
	name := ""
	for _, key := range all.keys() {
		if slices.Contains(operations, key) {
			name = key
		}
	}
	op := all.child(name)
	t.d.allow(duration(op.text("timeout")))
	if name != "" && (op.has("cluster") || op.has("clusters")) {
		t.d.stop(all.left(name, name, "a check has only one cluster"))
		return
	}
	for _, key := range []string{"bindings", "outputs"} {
		if op.has(key) {
			t.d.leave(op.left(key, key, "expressions are not supported"))
		}
	}
	switch name {
	case "apply", "create", "patch", "update":
		t.change(name, op)
	case "delete":
		t.delete(op, cmp.Or(op.text("deletionPropagationPolicy"), propagation))
	case "assert", "error":
		t.assert(name, op)
	case "wait":
		t.wait(op)
	case "sleep":
		t.d.leave(all.left(name, name, "a check waits until the cluster is at rest instead"))
	case "command":
		runs(t.d, all.left(name, "", ""), commandLine(op))
	case "script":
		runs(t.d, all.left(name, "", ""), op.text("content"))
	case "":
		t.d.stop(all.left("", "operation", "it is not known"))
	default: // describe, events, get, podLogs, proxy
		t.d.leave(all.left(name, name, "it only reads"))
	}
}

// commandLine returns a command as a line of a shell script.
func commandLine(op document) string {
	words := []string{op.text("entrypoint")}
	for _, arg := range op.texts("args") {
		words = append(words, "'"+strings.ReplaceAll(arg, "'", " ")+"'")
	}
	if words[0] == "kubectl" {
		// A verb in quotes is still a verb.
		for i, arg := range op.texts("args") {
			if !strings.ContainsAny(arg, " '\"\n;|&()<>$`\\#") {
				words[i+1] = arg
			}
		}
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// objects reads the objects of an operation.
func (t *chainsawTest) objects(op document) ([]document, error) {
	if op.has("resource") {
		return []document{op.child("resource")}, nil
	}
	return t.r.objects(t.dir, op.text("file"))
}

// source names the file of an operation, or its object.
func source(name string, op document) string {
	if file := op.text("file"); file != "" {
		return name + " " + file
	}
	return name
}

// change reads an operation that writes objects.
func (t *chainsawTest) change(name string, op document) {
	here := func(why string) LeftOut { return op.left("", source(name, op), "%s", why) }
	refused, why := expectation(op)
	switch {
	case why != "":
		t.d.stop(here(why))
		return
	case refused:
		t.d.leave(here("the API server refuses it, and a scenario cannot expect this"))
		return
	case op.value["dryRun"] == true:
		t.d.leave(here("a dry run changes nothing"))
		return
	}
	docs, err := t.objects(op)
	if err != nil {
		t.d.stop(here(err.Error()))
		return
	}
	switch name {
	case "apply", "create":
		t.d.apply(docs)
	case "update":
		for _, doc := range docs {
			if !t.d.replace(doc) {
				return
			}
		}
	case "patch":
		for _, doc := range docs {
			if !t.d.patch(doc, op.text("subresource")) {
				return
			}
		}
	}
}

// expectation reports whether an operation is expected to be refused. why is set if its expectations
// are of another form.
func expectation(op document) (refused bool, why string) {
	for _, e := range op.children("expect") {
		check := e.child("check")
		keys := check.keys()
		if e.has("match") || len(keys) != 1 {
			return false, "its expectations are not supported"
		}
		switch value := check.value[keys[0]]; strings.ReplaceAll(keys[0], " ", "") {
		case "($error!=null)":
			refused = value == true
		case "($error==null)":
			refused = value == false
		default:
			return false, "its expectations are not supported"
		}
	}
	return refused, ""
}

// delete reads an operation that deletes objects.
func (t *chainsawTest) delete(op document, propagation string) {
	if _, why := expectation(op); why != "" {
		t.d.stop(op.left("", source("delete", op), "%s", why))
		return
	}
	if !slices.Contains([]string{"", "Background", "Foreground", "Orphan"}, propagation) {
		propagation = ""
	}
	if op.has("ref") {
		t.d.delete(reference(op.child("ref")), propagation)
		return
	}
	docs, err := t.objects(op)
	if err != nil {
		t.d.stop(op.left("", source("delete", op), "%v", err))
		return
	}
	for _, doc := range docs {
		if !t.d.delete(doc, propagation) {
			return
		}
	}
}

// assert reads an assertion, or the assertion that nothing matches.
func (t *chainsawTest) assert(name string, op document) {
	docs, err := t.objects(op)
	if err != nil {
		t.d.leave(op.left("", source(name, op), "%v", err))
		return
	}
	for _, doc := range docs {
		if name == "assert" {
			t.d.expect(doc)
		} else {
			t.d.expectAbsent(doc)
		}
	}
}

// wait reads an operation that waits for a state of an object.
func (t *chainsawTest) wait(op document) {
	if op.has("selector") {
		t.d.leave(op.left("selector", "wait", "selectors are not supported"))
		return
	}
	value, _ := withNamespace(reference(op).value, t.d.namespace).(map[string]any)
	ref, why := t.d.target(value)
	c := scenario.Condition{ObjectRef: ref}
	target := op.child("for")
	switch {
	case why != "":
	case target.has("condition"):
		c.Status, why = status(target.child("condition"))
	case target.has("jsonPath"):
		c.Field, c.Equals, why = jsonPath(target.child("jsonPath"))
	case target.value["deletion"] != nil:
		c.Absent = true
	case target.value["creation"] != nil:
	default:
		why = "the condition is not known"
	}
	if why != "" {
		t.d.leave(op.left("", "wait for "+describe(ref), "%s", why))
		return
	}
	t.d.wait(c)
}

// status returns a condition of a wait in the form of a scenario.
func status(condition document) (string, string) {
	name, value := condition.text("name"), strings.ToLower(condition.text("value"))
	if b, isBool := condition.value["value"].(bool); isBool {
		value = strconv.FormatBool(b)
	}
	values := map[string]string{"": "True", "true": "True", "false": "False", "unknown": "Unknown"}
	if values[value] == "" || name == "" || strings.ContainsAny(name, "()= \t\n$") {
		return "", "the condition is not supported"
	}
	return name + "=" + values[value], ""
}

// jsonPath returns the field and the value of a wait. Like kubectl, chainsaw compares texts, so a
// number or a boolean in the text stands for that value.
func jsonPath(target document) (field string, equals []byte, why string) {
	field = strings.TrimSuffix(strings.TrimPrefix(target.text("path"), "{"), "}")
	if expression.MatchString(field) || !isPath(strings.TrimPrefix(strings.TrimPrefix(field, "$"), ".")) {
		return "", nil, "the path is not supported"
	}
	if !target.has("value") {
		return field, nil, ""
	}
	value := fmt.Sprint(target.value["value"])
	if _, why := unsupported(value, true); why != "" {
		return "", nil, why
	}
	var parsed any
	if json.Unmarshal([]byte(value), &parsed) != nil || !plain(parsed) {
		parsed = value
	}
	equals, err := json.Marshal(parsed)
	if err != nil {
		return "", nil, err.Error()
	}
	return field, equals, ""
}
