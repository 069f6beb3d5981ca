package suite

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kuttlGroup is the group of kuttl's own kinds.
const kuttlGroup = "kuttl.dev/"

// kuttlFile matches the names of files and folders that kuttl reads in the folder of a case, and of
// files in the folder of a step, where the number is optional.
var kuttlFile = regexp.MustCompile(`^(?:(\d+)-)?([^-.]+)(-[^.]+)?(\.gotmpl)?(\.yaml)?$`)

// kuttlSuite holds what a TestSuite says about all cases.
type kuttlSuite struct {
	namespace string
	timeout   time.Duration
	ignored   []string // patterns of files
}

// kuttl reads the cases of kuttl in a folder.
func (s *Suite) kuttl(r *reader, dir string) error {
	settings, testDirs, configured := s.kuttlSettings(r, dir)
	if !configured && len(s.Cases) > 0 {
		return nil // the numbered files next to a test of chainsaw belong to that test
	}
	var cases []string
	if configured {
		for _, testDir := range testDirs {
			entries, err := fs.ReadDir(r.fsys, testDir)
			if err != nil {
				return fmt.Errorf("reading a suite: %w", err)
			}
			for _, entry := range entries {
				if entry.IsDir() && !strings.HasPrefix(entry.Name(), ".") {
					cases = append(cases, path.Join(testDir, entry.Name()))
				}
			}
		}
	} else {
		all, err := r.folders(dir)
		if err != nil {
			return err
		}
		cases = slices.DeleteFunc(all, func(folder string) bool { return !r.isKuttlCase(folder) })
	}
	for _, folder := range cases {
		c, err := settings.read(r, folder)
		if err != nil {
			return err
		}
		if c != nil {
			s.Cases = append(s.Cases, c)
		}
	}
	return nil
}

// kuttlSettings reads kuttl-test.yaml, and reports whether it names folders of cases.
func (s *Suite) kuttlSettings(r *reader, dir string) (k kuttlSuite, testDirs []string, configured bool) {
	file := path.Join(dir, "kuttl-test.yaml")
	if _, err := fs.Stat(r.fsys, file); err != nil {
		return k, nil, false
	}
	docs, err := r.documents(file)
	if err != nil {
		s.LeftOut = append(s.LeftOut, unread(file, err))
		return k, nil, false
	}
	for _, doc := range docs {
		if doc.text("kind") != "TestSuite" || !strings.HasPrefix(doc.text("apiVersion"), kuttlGroup) {
			continue
		}
		k.namespace, k.timeout, k.ignored = doc.text("namespace"), seconds(doc.value["timeout"]), doc.texts("ignoreFiles")
		for i, named := range doc.texts("testDirs") {
			if found := r.above(dir, named); found != "" {
				testDirs = append(testDirs, found)
				continue
			}
			s.LeftOut = append(s.LeftOut, doc.left(fmt.Sprintf("testDirs[%d]", i), "testDirs "+named, "the folder does not exist"))
		}
		for i := range doc.children("commands") {
			s.LeftOut = append(s.LeftOut, doc.left(fmt.Sprintf("commands[%d]", i), "a command of the suite", "commands are not run; a check installs the controller itself"))
		}
		if doc.has("crdDir") {
			s.LeftOut = append(s.LeftOut, doc.left("crdDir", "crdDir", "pass this folder to koboshi check with --crds or --with-crds"))
		}
		if doc.has("manifestDirs") {
			s.LeftOut = append(s.LeftOut, doc.left("manifestDirs", "manifestDirs", "pass these folders to koboshi check with --given"))
		}
	}
	return k, testDirs, len(testDirs) > 0
}

// above finds a folder that is named relative to the folder in which kuttl was started: dir or a
// folder above it.
func (r *reader) above(dir, named string) string {
	for at := dir; ; at = path.Dir(at) {
		if found := path.Join(at, named); fs.ValidPath(found) {
			if info, err := fs.Stat(r.fsys, found); err == nil && info.IsDir() {
				return found
			}
		}
		if at == "." || at == "/" {
			return ""
		}
	}
}

// seconds returns a time limit of kuttl. It is zero if the value is not a positive number.
func seconds(value any) time.Duration {
	n, _ := value.(int)
	return time.Duration(max(0, min(n, 1_000_000))) * time.Second
}

// unread returns the entry for a file that cannot be read.
func unread(file string, err error) LeftOut {
	l := LeftOut{File: file, What: "the file", Why: err.Error()}
	if p, known := err.(problem); known {
		l.Line = p.line
	}
	return l
}

// isKuttlCase reports whether a folder looks like a case: it contains a numbered assertion, or a
// numbered file with an object of kuttl.
func (r *reader) isKuttlCase(folder string) bool {
	entries, err := fs.ReadDir(r.fsys, folder)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		parts := kuttlFile.FindStringSubmatch(entry.Name())
		if parts == nil || parts[1] == "" || entry.IsDir() || parts[5] == "" {
			continue
		}
		if kind := strings.ToLower(parts[2]); kind == "assert" || kind == "errors" {
			return true
		}
		docs, _ := r.documents(path.Join(folder, entry.Name()))
		if slices.ContainsFunc(docs, func(d document) bool { return strings.HasPrefix(d.text("apiVersion"), kuttlGroup) }) {
			return true
		}
	}
	return false
}

// kuttlStep holds the files of one step.
type kuttlStep struct {
	number int
	name   string
	files  []string
}

// read reads a case. It returns nil for a folder without steps.
func (k kuttlSuite) read(r *reader, folder string) (*Case, error) {
	all, err := k.steps(r, folder)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	d := newDraft(Kuttl, folder, path.Base(folder), k.namespace)
	d.allow(k.timeout)
	for _, st := range all {
		if d.begin(st.name) {
			r.kuttlStep(d, folder, st.files)
		}
	}
	return d.finish(Kuttl, folder, folder), nil
}

// steps groups the files of a case by their numbers. A step is named after its first file that is
// not an assertion.
func (k kuttlSuite) steps(r *reader, folder string) (all []*kuttlStep, err error) {
	entries, err := fs.ReadDir(r.fsys, folder)
	if err != nil {
		return nil, fmt.Errorf("reading a suite: %w", err)
	}
	for _, entry := range entries {
		parts := kuttlFile.FindStringSubmatch(entry.Name())
		if parts == nil || parts[1] == "" || entry.IsDir() == (parts[5] != "") || k.ignores(entry.Name()) {
			continue
		}
		number, err := strconv.Atoi(parts[1])
		if err != nil {
			continue
		}
		i := slices.IndexFunc(all, func(s *kuttlStep) bool { return s.number == number })
		if i < 0 {
			i, all = len(all), append(all, &kuttlStep{number: number})
		}
		files := []string{path.Join(folder, entry.Name())}
		if entry.IsDir() {
			files = k.inFolder(r, files[0])
		}
		all[i].files = append(all[i].files, files...)
		plain := strings.TrimSuffix(strings.TrimSuffix(entry.Name(), ".yaml"), ".gotmpl")
		if all[i].name == "" || !isAssertion(parts[2]) && isAssertion(secondPart(all[i].name)) {
			all[i].name = plain
		}
	}
	slices.SortStableFunc(all, func(a, b *kuttlStep) int { return cmp.Compare(a.number, b.number) })
	return all, nil
}

func secondPart(name string) string {
	if parts := kuttlFile.FindStringSubmatch(name); parts != nil {
		return parts[2]
	}
	return ""
}

func isAssertion(part string) bool {
	return slices.Contains([]string{"assert", "errors"}, strings.ToLower(part))
}

func (k kuttlSuite) ignores(name string) bool {
	return slices.ContainsFunc(k.ignored, func(pattern string) bool {
		matches, _ := path.Match(pattern, name)
		return matches
	})
}

// inFolder returns the files of a step that is a folder.
func (k kuttlSuite) inFolder(r *reader, folder string) (files []string) {
	entries, _ := fs.ReadDir(r.fsys, folder)
	for _, entry := range entries {
		parts := kuttlFile.FindStringSubmatch(entry.Name())
		if parts != nil && !entry.IsDir() && parts[5] != "" && !k.ignores(entry.Name()) {
			files = append(files, path.Join(folder, entry.Name()))
		}
	}
	return files
}

// kuttlWork holds the documents of one step of kuttl, in the order in which kuttl uses them.
type kuttlWork struct {
	steps   []document // TestStep
	applied []document
	asserts []document
	errors  []document
	checks  []document // TestAssert
}

// kuttlStep reads one step.
func (r *reader) kuttlStep(d *draft, folder string, files []string) {
	var w kuttlWork
	for _, file := range files {
		if !w.load(r, d, file) {
			return
		}
	}
	for _, step := range w.steps {
		if !w.paths(r, d, folder, step) || !kuttlActions(d, step) {
			return
		}
	}
	if len(w.applied) > 0 && !d.apply(w.applied) {
		d.rest = len(w.asserts)+len(w.errors)+len(w.checks) > 0
		return
	}
	for _, doc := range w.asserts {
		d.expect(doc)
	}
	for _, doc := range w.errors {
		d.expectAbsent(doc)
	}
	for _, doc := range w.checks {
		kuttlCheck(d, doc)
	}
}

// load sorts the documents of a file. It returns false if a file that changes the cluster cannot
// be read.
func (w *kuttlWork) load(r *reader, d *draft, file string) bool {
	parts := kuttlFile.FindStringSubmatch(path.Base(file))
	assertion := isAssertion(parts[2])
	leave := func(l LeftOut) bool {
		if assertion {
			d.leave(l)
			return true
		}
		d.stop(l)
		d.rest = true
		return false
	}
	if parts[4] != "" {
		return leave(LeftOut{File: file, What: "the file", Why: "templates are not supported"})
	}
	docs, err := r.documents(file)
	if err != nil {
		return leave(unread(file, err))
	}
	for _, doc := range docs {
		if doc.text("kind") == "TestFile" && strings.HasPrefix(doc.text("apiVersion"), kuttlGroup) {
			d.leave(doc.left("", "the file", "kuttl reads it only if a label of the test run selects it"))
			return true
		}
	}
	for _, doc := range docs {
		if strings.HasPrefix(doc.text("apiVersion"), kuttlGroup) {
			switch kind := doc.text("kind"); kind {
			case "TestStep":
				w.steps = append(w.steps, doc)
			case "TestAssert":
				w.checks = append(w.checks, doc)
			default:
				d.leave(doc.left("", kind, "this kind is not known"))
			}
			continue
		}
		switch strings.ToLower(parts[2]) {
		case "assert":
			w.asserts = append(w.asserts, doc)
		case "errors":
			w.errors = append(w.errors, doc)
		default:
			w.applied = append(w.applied, doc)
		}
	}
	return true
}

// paths adds the objects of the files that a TestStep names. It returns false if a file that changes
// the cluster cannot be read.
func (w *kuttlWork) paths(r *reader, d *draft, folder string, step document) bool {
	for _, list := range []struct {
		key  string
		into *[]document
	}{{"apply", &w.applied}, {"assert", &w.asserts}, {"error", &w.errors}} {
		for i, name := range step.texts(list.key) {
			docs, err := r.objects(folder, name)
			if err == nil {
				*list.into = append(*list.into, docs...)
				continue
			}
			l := step.left(fmt.Sprintf("%s[%d]", list.key, i), list.key+" "+name, "%v", err)
			if list.key == "apply" {
				d.stop(l)
				d.rest = true
				return false
			}
			d.leave(l)
		}
	}
	return true
}

// objects reads the documents of the files that a path names.
func (r *reader) objects(dir, name string) (all []document, err error) {
	files, err := r.named(dir, name)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		docs, err := r.documents(file)
		if err != nil {
			return nil, problem{why: fmt.Sprintf("%s: %v", unread(file, err).Place(), err)}
		}
		all = append(all, docs...)
	}
	if len(all) == 0 {
		return nil, problem{why: "the file contains no object"}
	}
	return all, nil
}

// kuttlActions deletes what a TestStep deletes, and decides about its commands. It returns false if
// a part that changes the cluster is left out.
func kuttlActions(d *draft, step document) bool {
	for _, key := range []string{"kubeconfig", "context"} {
		if step.has(key) {
			d.stop(step.left(key, key, "a check has only one cluster"))
			d.rest = true
			return false
		}
	}
	for _, ref := range step.children("delete") {
		if !d.delete(reference(ref), "") {
			d.rest = true
			return false
		}
	}
	for i, command := range step.children("commands") {
		script := cmp.Or(command.text("command"), command.text("script"))
		if !runs(d, step.left(fmt.Sprintf("commands[%d]", i), "", ""), script) {
			d.rest = true
			return false
		}
	}
	return true
}

// reference turns a reference to an object into a document with the object's metadata.
func reference(ref document) document {
	metadata := map[string]any{}
	for _, key := range []string{"name", "namespace", "labels"} {
		if ref.has(key) {
			metadata[key] = ref.value[key]
		}
	}
	out := ref
	out.value = map[string]any{"apiVersion": ref.value["apiVersion"], "kind": ref.value["kind"], "metadata": metadata}
	return out
}

// runs leaves out a command. It returns false if the command may change the cluster.
func runs(d *draft, at LeftOut, script string) bool {
	at.What, at.Why = fmt.Sprintf("command %q", brief(script)), "commands are not run"
	culprit := writes(script)
	if culprit == "" {
		d.leave(at)
		return true
	}
	if culprit = brief(culprit); culprit != brief(script) {
		at.Why += fmt.Sprintf(", and %q may change the cluster", culprit)
	} else {
		at.Why += ", and this one may change the cluster"
	}
	d.stop(at)
	return false
}

// kuttlCheck reads a TestAssert.
func kuttlCheck(d *draft, doc document) {
	d.allow(seconds(doc.value["timeout"]))
	for _, key := range doc.keys() {
		switch key {
		case "apiVersion", "kind", "metadata", "timeout":
		case "commands":
			for i, command := range doc.children(key) {
				script := cmp.Or(command.text("command"), command.text("script"))
				d.leave(doc.left(fmt.Sprintf("commands[%d]", i), fmt.Sprintf("command %q", brief(script)), "commands are not run"))
			}
		case "collectors":
			d.leave(doc.left(key, key, "they only collect information for a failed test"))
		case "assertAny", "assertAll":
			d.leave(doc.left(key, key, "expressions are not supported"))
		case "resourceRefs":
			d.leave(doc.left(key, key, "only expressions use them"))
		default:
			d.leave(doc.left(key, key, "the field is not known"))
		}
	}
}
