package suite

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// draft collects the steps of a scenario while a case is read.
//
//	following ──stop──▶ ended: a step that changes the cluster is missing, so that everything after
//	                    it could have another meaning
type draft struct {
	// namespace holds objects without a namespace of their own; empty means default.
	namespace string
	// expressions is set if the format has expressions in objects.
	expressions bool

	scenario scenario.Scenario
	known    []knownObject
	timeout  time.Duration
	leftOut  []LeftOut

	step   string // the name of the current step of the suite
	last   int    // the index of the scenario's step that gets expectations, or -1
	ended  string // the name of the step that ended the import, or ""
	rest   bool   // a part of that step follows, which is left out too
	behind []string
}

// knownObject is an object that exists at this point of the case.
type knownObject struct {
	ref    scenario.ObjectRef
	labels map[string]any
}

func newDraft(format, dir, name, namespace string) *draft {
	d := &draft{namespace: namespace, expressions: format == Chainsaw, last: -1}
	d.scenario = scenario.Scenario{
		APIVersion: scenario.APIVersion, Kind: scenario.Kind, Name: label(name),
		Description: fmt.Sprintf("Imported from %s, a test case of %s.", dir, format),
	}
	return d
}

// begin starts a step of the suite. It returns false if the step is left out because of an earlier
// one.
func (d *draft) begin(name string) bool {
	d.step, d.last = stepName(name), -1
	if d.ended != "" {
		d.behind = append(d.behind, d.step)
	}
	return d.ended == ""
}

// leave records a part without which the other parts keep their meaning.
func (d *draft) leave(l LeftOut) { d.leftOut = append(d.leftOut, l) }

// stop records a part that may change the cluster. All later parts of the case are left out.
func (d *draft) stop(l LeftOut) {
	d.leave(l)
	d.ended = d.step
}

// following reports whether the next part of the current step can be imported.
func (d *draft) following() bool {
	d.rest = d.rest || d.ended != ""
	return d.ended == ""
}

// add adds a step to the scenario.
func (d *draft) add(st scenario.Step) {
	st.Name = d.step
	for i := 2; slices.ContainsFunc(d.scenario.Steps, func(o scenario.Step) bool { return o.Name == st.Name }); i++ {
		st.Name = fmt.Sprintf("%s-%d", d.step, i)
	}
	d.scenario.Steps, d.last = append(d.scenario.Steps, st), len(d.scenario.Steps)
}

// current returns the step of the scenario that gets expectations.
func (d *draft) current() *scenario.Step {
	if d.last < 0 {
		d.add(scenario.Step{})
	}
	return &d.scenario.Steps[d.last]
}

// allow sets the time that a step may take, if it is the longest so far.
func (d *draft) allow(t time.Duration) { d.timeout = max(d.timeout, t) }

// object returns an object that is written, with its namespace. If it cannot be imported, object
// stops the import and returns false.
func (d *draft) object(verb string, doc document) (scenario.ObjectRef, map[string]any, bool) {
	value, _ := withNamespace(doc.value, d.namespace).(map[string]any)
	ref := refOf(value, d.namespace)
	at, why := unsupported(value, d.expressions)
	if why == "" {
		why = wrongRef(ref)
	}
	if why != "" {
		d.stop(doc.left(at, verb+" "+describe(ref), "%s", why))
		return ref, nil, false
	}
	if metadata, _ := value["metadata"].(map[string]any); ref.Namespace != text(metadata, "namespace") {
		if ref.Namespace == "" {
			delete(metadata, "namespace")
		} else {
			metadata["namespace"] = ref.Namespace
		}
	}
	return ref, value, true
}

// apply creates objects, or merges them into those that exist, in order. It returns false if an
// object cannot be imported.
func (d *draft) apply(docs []document) bool {
	type made struct {
		ref   scenario.ObjectRef
		value map[string]any
	}
	var all []made
	for _, doc := range docs {
		ref, value, ok := d.object("apply", doc)
		if !ok {
			return false
		}
		all = append(all, made{ref, value})
	}
	fresh := -1 // the step to which the next new object is added
	for _, m := range all {
		if d.find(m.ref) >= 0 {
			d.merge(m.ref, m.value, "")
			fresh = -1
			continue
		}
		object, err := manifest(m.value)
		if err != nil {
			continue // values that were decoded from YAML have a form in JSON
		}
		if fresh < 0 {
			d.add(scenario.Step{})
			fresh = d.last
		}
		d.scenario.Steps[fresh].Apply = append(d.scenario.Steps[fresh].Apply, object)
		d.know(m.ref, m.value)
	}
	return true
}

// replace applies an object with all its fields, even if it exists.
func (d *draft) replace(doc document) bool {
	ref, value, ok := d.object("update", doc)
	if !ok {
		return false
	}
	if object, err := manifest(value); err == nil {
		d.add(scenario.Step{Apply: []scenario.Manifest{object}})
		d.know(ref, value)
	}
	return true
}

// patch merges an object into one that exists.
func (d *draft) patch(doc document, subresource string) bool {
	ref, value, ok := d.object("patch", doc)
	if !ok {
		return false
	}
	if !slices.Contains([]string{"", "status", "scale"}, subresource) {
		d.stop(doc.left("", "patch "+describe(ref), "the subresource %s is not supported", subresource))
		return false
	}
	d.merge(ref, value, subresource)
	d.know(ref, value)
	return true
}

func (d *draft) merge(ref scenario.ObjectRef, value map[string]any, subresource string) {
	fields := change(value)
	if fields == nil {
		return // the object exists already
	}
	if data, err := json.Marshal(fields); err == nil {
		d.add(scenario.Step{Patch: &scenario.Patch{ObjectRef: ref, Merge: data, Subresource: subresource}})
	}
}

// delete deletes the object to which a document refers.
func (d *draft) delete(doc document, propagation string) bool {
	value, _ := withNamespace(doc.value, d.namespace).(map[string]any)
	ref, why := d.target(value)
	if why != "" {
		d.stop(doc.left("", "delete "+describe(ref), "%s", why))
		return false
	}
	d.add(scenario.Step{Delete: &scenario.Delete{ObjectRef: ref, Propagation: propagation}})
	if i := d.find(ref); i >= 0 {
		d.known = slices.Delete(d.known, i, i+1)
	}
	return true
}

// expect adds expectations for an object that must match.
func (d *draft) expect(doc document) {
	value, _ := withNamespace(doc.value, d.namespace).(map[string]any)
	ref, why := d.target(value)
	if why != "" {
		d.leave(doc.left("", "assert "+describe(ref), "%s", why))
		return
	}
	conditions, left := subset(ref, value, d.expressions)
	for _, l := range left {
		d.leave(doc.left(l.path, fmt.Sprintf("%s of %s", l.path, describe(ref)), "%s", l.why))
	}
	step := d.current()
	for _, c := range conditions {
		if !slices.ContainsFunc(step.Expect, func(o scenario.Condition) bool { return o.String() == c.String() }) {
			step.Expect = append(step.Expect, c)
		}
	}
	labels, _ := value["metadata"].(map[string]any)
	d.know(ref, map[string]any{"metadata": map[string]any{"labels": labels["labels"]}})
}

// expectAbsent adds the expectation that an object does not exist.
func (d *draft) expectAbsent(doc document) {
	value, _ := withNamespace(doc.value, d.namespace).(map[string]any)
	ref := refOf(value, d.namespace)
	why := wrongRef(ref)
	at, expression := unsupported(value, d.expressions)
	if expression != "" {
		why = expression
	} else if why == "" && change(value) != nil {
		why = "a scenario can only expect that an object is absent, not that its fields differ"
	}
	if why != "" {
		d.leave(doc.left(at, "error "+describe(ref), "%s", why))
		return
	}
	step := d.current()
	step.Expect = append(step.Expect, scenario.Condition{ObjectRef: ref, Absent: true})
	if i := d.find(ref); i >= 0 {
		d.known = slices.Delete(d.known, i, i+1)
	}
}

// wait adds a condition that must hold before the cluster can be at rest.
func (d *draft) wait(c scenario.Condition) {
	step := d.current()
	step.Wait = append(step.Wait, c)
}

// target returns the reference to an object that is asserted or deleted. An object without a name is
// the only one of its kind.
func (d *draft) target(value map[string]any) (scenario.ObjectRef, string) {
	ref := refOf(value, d.namespace)
	if _, why := unsupported([]any{ref.APIVersion, ref.Kind, ref.Name, ref.Namespace}, d.expressions); why != "" {
		return ref, why
	}
	if ref.Name == "" && ref.APIVersion != "" && ref.Kind != "" {
		only, why := d.only(ref, value)
		if why != "" {
			return ref, "it has no name, and " + why
		}
		return only, ""
	}
	return ref, wrongRef(ref)
}

// only returns the known object of a kind with the labels of a value, if there is exactly one.
func (d *draft) only(ref scenario.ObjectRef, value map[string]any) (scenario.ObjectRef, string) {
	metadata, _ := value["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	var found []scenario.ObjectRef
	for _, k := range d.known {
		matches := sameKind(k.ref, ref) && sameNamespace(k.ref, ref)
		for key, value := range labels {
			matches = matches && k.labels[key] == value && plain(value)
		}
		if matches {
			found = append(found, k.ref)
		}
	}
	if len(found) != 1 {
		return ref, fmt.Sprintf("the case names %s of this kind", number(len(found)))
	}
	return found[0], ""
}

func number(n int) string {
	if n == 0 {
		return "no object"
	}
	return fmt.Sprintf("%d objects", n)
}

// find returns the index of a known object, or -1.
func (d *draft) find(ref scenario.ObjectRef) int {
	return slices.IndexFunc(d.known, func(k knownObject) bool { return sameObject(k.ref, ref) })
}

func (d *draft) know(ref scenario.ObjectRef, value map[string]any) {
	metadata, _ := value["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	if i := d.find(ref); i >= 0 {
		if labels != nil {
			d.known[i].labels = labels
		}
		return
	}
	d.known = append(d.known, knownObject{ref, labels})
}

// longest limits the time of a step that a scenario takes over from a suite, whose times are those
// of real containers.
const longest, usual = time.Minute, 20 * time.Second

// finish returns the case with its scenario.
func (d *draft) finish(format, dir, file string) *Case {
	c := &Case{Format: format, Dir: dir, Short: d.ended != "", LeftOut: d.leftOut}
	if what := d.remainder(); what != "" {
		c.LeftOut = append(c.LeftOut, LeftOut{File: file, What: what, Why: fmt.Sprintf("this may depend on the part of step %s that is left out", d.ended)})
	}
	acts := func(st scenario.Step) bool { return st.Apply != nil || st.Patch != nil || st.Delete != nil }
	if !slices.ContainsFunc(d.scenario.Steps, acts) {
		c.LeftOut = append(c.LeftOut, LeftOut{File: file, What: "the whole case", Why: "no step that changes the cluster can be imported"})
		return c
	}
	if d.timeout > usual {
		d.scenario.Rest.Timeout = scenario.Duration(min(d.timeout, longest))
	}
	d.scenario.Given = d.namespaces()
	if err := d.scenario.Validate(); err != nil {
		c.LeftOut = append(c.LeftOut, LeftOut{File: file, What: "the whole case", Why: strings.Join(strings.Fields(err.Error()), " ")})
		return c
	}
	c.Scenario = &d.scenario
	return c
}

// remainder names what follows the step that ended the import.
func (d *draft) remainder() string {
	var parts []string
	if d.rest {
		parts = append(parts, "the rest of step "+d.ended)
	}
	switch len(d.behind) {
	case 0:
	case 1:
		parts = append(parts, "step "+d.behind[0])
	default:
		parts = append(parts, "steps "+strings.Join(d.behind, ", "))
	}
	return strings.Join(parts, ", and ")
}

// namespaces returns the namespaces that the case expects to exist.
func (d *draft) namespaces() (all []scenario.Manifest) {
	made := map[string]bool{"": true, "default": true, "kube-system": true, "kube-public": true, "kube-node-lease": true}
	for _, st := range d.scenario.Steps {
		for _, m := range st.Apply {
			ref := refOf(m.Object, "")
			if ref.Kind == "Namespace" {
				made[ref.Name] = true
			}
			if !made[ref.Namespace] {
				made[ref.Namespace] = true
				all = append(all, scenario.Manifest{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": ref.Namespace}}})
			}
		}
	}
	return all
}

var notInStepName = regexp.MustCompile(`[^A-Za-z0-9_.]+`)

// stepName turns text into the name of a step.
func stepName(text string) string {
	const most = 50 // leaves room for a number
	name := strings.Trim(notInStepName.ReplaceAllString(text, "-"), "-_.")
	name = strings.Trim(name[:min(len(name), most)], "-_.")
	if name == "" {
		return "step"
	}
	return name
}
