package judge

import (
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// takenAlone finds objects of the scenario that the controller adopts, changes or deletes in
// every run, although nothing asks it to.
//
// An object counts if a manifest of the scenario created it and its kind is not one that the
// controller reconciles. A controller may legally annotate or label an object that it refers to,
// guard the object with a finalizer, and write its status. So only three actions count: the
// controller changes the object's content, adds an owner to the object, or deletes it. The
// user may have requested any of these actions, so there is no finding if
//
//   - a label or an annotation in the manifest, with a domain of its own, may be such a
//     request, for example an annotation for a replicator,
//   - the selector of a reconciled resource selects the object, as a ReplicaSet selects Pods,
//   - a reconciled resource names the object in its spec. Even then, the object must not be
//     lost: if the controller adds an owner to a user's Secret, the Secret is deleted
//     together with this owner.
//
// If no resource names the object, the controller must also create objects of the same kind in one
// of the runs. A controller that creates no objects of this kind may exist to change objects that
// other clients made: kube-green scales down each Deployment of a namespace.
//
// The remaining objects have the name of a child by chance, and the controller mistakes them for
// its own.
func takenAlone(inputs []*input) []Finding {
	if len(inputs) == 0 {
		return nil
	}
	made := map[schema.GroupKind]bool{}
	for _, in := range inputs {
		in.addMade(made)
	}
	var findings []Finding
	for key, t := range inputs[0].taken(made) {
		always := true
		for _, other := range inputs[1:] {
			always = always && other.taken(made)[key].how == t.how
		}
		if always {
			findings = append(findings, inputs[0].finding(TakenOver, inputs[0].stepAt(t.revision),
				"the controller "+t.how+" "+key+", which the scenario supplied, and which nothing asks it to manage",
				[]state.Difference{{Object: key, Path: t.path}}))
		}
	}
	slices.SortFunc(findings, func(a, b Finding) int { return strings.Compare(a.Sentence, b.Sentence) })
	return findings
}

// seizure describes the controller's first action on an object.
type seizure struct {
	how, path string
	revision  int64
}

// addMade adds to made the kinds of the objects that the controller creates.
func (in *input) addMade(made map[schema.GroupKind]bool) {
	for _, c := range in.run.History.Changes {
		if c.Op == state.Created && in.authors[c.Revision] != nil {
			made[c.Ref.GroupKind] = true
		}
	}
}

// taken returns what the controller does to objects that the scenario supplied, by their
// canonical names. made holds the kinds of the objects that the controller creates.
func (in *input) taken(made map[schema.GroupKind]bool) map[string]seizure {
	found := map[string]seizure{}
	supplied := in.supplied()
	adopted := map[string]bool{} // by canonical name, with an owner that the controller added
	for _, c := range in.run.History.Changes {
		key := in.labels.Of(c.Ref)
		object := supplied[c.Ref]
		if object == nil || c.Before == nil || c.Before.Metadata("uid") != object.Metadata("uid") || found[key].how != "" {
			continue
		}
		mine := in.authors[c.Revision] != nil
		named := in.named(c.Ref)
		switch {
		case !named && !made[c.Ref.GroupKind]:
		case c.Op == state.Deleted && (in.deleter(c) || adopted[key]):
			found[key] = seizure{"causes the deletion of", "", c.Revision}
		case c.Op == state.Deleted || !mine:
		case !reflect.DeepEqual(content(c.Before), content(c.After)) && !named:
			found[key] = seizure{"changes", "", c.Revision}
		case gainsOwner(c):
			if adopted[key] = true; !named {
				found[key] = seizure{"adopts", "metadata.ownerReferences", c.Revision}
			}
		}
	}
	return found
}

// supplied returns the objects that manifests of the scenario created, except objects of the kinds
// that the controller reconciles, and objects whose manifests ask the controller to manage them.
func (in *input) supplied() map[state.Ref]state.Object {
	if len(in.subject.Primary) == 0 {
		return nil // it is unknown which kinds the controller reconciles
	}
	manifests := map[string]state.Object{}
	add := func(object state.Object) {
		if name := objectName(object); name != "" {
			manifests[name], manifests[inDefault(name)] = object, object
		}
	}
	for _, m := range in.ref.Scenario.Given {
		add(m.Object)
	}
	for _, s := range in.ref.Scenario.Steps {
		for _, m := range s.Apply {
			add(m.Object)
		}
	}
	supplied := map[state.Ref]state.Object{}
	for _, c := range in.run.History.Changes {
		manifest := manifests[in.labels.Of(c.Ref)]
		if c.Op == state.Created && manifest != nil && in.authors[c.Revision] == nil &&
			!slices.Contains(in.subject.Primary, c.Ref.String()) && !asks(manifest) && !in.selected(c.After) {
			supplied[c.Ref] = c.After
		}
	}
	return supplied
}

// asks reports whether a label or annotation of a manifest may ask a controller to manage the
// object.
func asks(manifest state.Object) bool {
	return hasDomain(manifest.Labels()) || hasDomain(manifest.Annotations())
}

func hasDomain(keys map[string]any) bool {
	for key := range keys {
		domain, _, found := strings.Cut(key, "/")
		if found && domain != "app.kubernetes.io" && domain != "kubectl.kubernetes.io" {
			return true
		}
	}
	return false
}

// reconciled calls visit for each state of each resource that the controller reconciles.
func (in *input) reconciled(visit func(state.Object)) {
	for _, c := range in.run.History.Changes {
		if c.After != nil && slices.Contains(in.subject.Primary, c.Ref.String()) {
			visit(c.After)
		}
	}
}

// named reports whether a reconciled resource names an object.
func (in *input) named(ref state.Ref) (named bool) {
	in.reconciled(func(object state.Object) {
		named = named || mentions(map[string]any(content(object)), ref.Name, ref.Namespace+"/"+ref.Name)
	})
	return named
}

// mentions reports whether one of the texts is a value anywhere below v.
func mentions(v any, texts ...string) bool {
	switch typed := v.(type) {
	case map[string]any:
		for _, item := range typed {
			if mentions(item, texts...) {
				return true
			}
		}
	case []any:
		for _, item := range typed {
			if mentions(item, texts...) {
				return true
			}
		}
	case string:
		return slices.Contains(texts, typed)
	}
	return false
}

// selected reports whether the selector of a reconciled resource selects an object.
func (in *input) selected(object state.Object) (selected bool) {
	labels := object.Labels()
	in.reconciled(func(resource state.Object) {
		spec, _ := resource["spec"].(map[string]any)
		selector, _ := spec["selector"].(map[string]any)
		if inner, nested := selector["matchLabels"].(map[string]any); nested {
			selector = inner
		}
		all := len(selector) > 0
		for key, value := range selector {
			all = all && reflect.DeepEqual(labels[key], value)
		}
		selected = selected || all
	})
	return selected
}

// gainsOwner reports whether a change adds an owner.
func gainsOwner(c state.Change) bool {
	return slices.ContainsFunc(c.After.Owners(), func(o state.Owner) bool {
		return !slices.ContainsFunc(c.Before.Owners(), func(other state.Owner) bool { return other.UID == o.UID })
	})
}

// deleter reports whether the controller requested a deletion. The answer to such a request
// has no version, so the request is found by its object and its time.
func (in *input) deleter(c state.Change) bool {
	for i := range in.run.Entries {
		e := &in.run.Entries[i]
		if !isWork(e) || !succeeded(e) || e.Call.Verb != "delete" {
			continue
		}
		t := e.Call.Target
		if t.Name == c.Ref.Name && t.Namespace == c.Ref.Namespace && t.Group == c.Ref.Group && t.Subresource == "" &&
			e.At-e.Call.Took <= c.At && c.At <= e.At+atOnce {
			return true
		}
	}
	return false
}
