package plan

import (
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// children finds the objects that the controller has made: those whose creation is
// the effect of one of its requests, and those that a primary resource controls.
// What somebody else made is not the controller's to repair.
func (r *reading) children(in Input) {
	changes := r.run.History.Changes
	for _, q := range r.requests {
		if q.write && q.call.Endpoint == "" {
			r.managers[managerOf(q.call)] = true
		}
		if q.change >= 0 && changes[q.change].Op == state.Created {
			r.made[changes[q.change].Ref] = q.call
		}
	}
	if in.Subject == nil {
		return
	}
	for _, c := range changes {
		if _, ok := r.made[c.Ref]; ok || c.Op != state.Created {
			continue
		}
		if slices.Contains(in.Subject.Primary, controllerOf(c.After)) {
			r.made[c.Ref] = nil
		}
	}
}

// managerOf is the field manager of a write: what it says, or the first part of
// the user agent, as the API server has it.
func managerOf(call *trace.Call) string {
	_, query, _ := strings.Cut(call.Path, "?")
	if values, err := url.ParseQuery(query); err == nil && values.Has("fieldManager") {
		return values.Get("fieldManager")
	}
	name, _, _ := strings.Cut(call.UserAgent, "/")
	return name
}

// controllerOf is the kind of the owner that controls an object, "Kind.group".
func controllerOf(o state.Object) string {
	metadata, _ := o["metadata"].(map[string]any)
	owners, _ := metadata["ownerReferences"].([]any)
	for _, v := range owners {
		owner, _ := v.(map[string]any)
		if owner["controller"] != true {
			continue
		}
		kind, _ := owner["kind"].(string)
		version, _ := owner["apiVersion"].(string)
		return kindName(schema.FromAPIVersionAndKind(version, kind).GroupKind())
	}
	return ""
}

// kindName is "Kind.group", or "Kind" of the core group.
func kindName(gk schema.GroupKind) string {
	return strings.TrimSuffix(gk.Kind+"."+gk.Group, ".")
}

// standing are the controller's objects that are there at a step's rest, and are
// not about to go, by kind.
func (r *reading) standing(s step) map[schema.GroupKind][]state.Ref {
	alive := map[state.Ref]bool{}
	for _, c := range r.run.History.Changes[:s.to] {
		if _, ok := r.made[c.Ref]; ok {
			alive[c.Ref] = c.Op != state.Deleted && !terminating(c.After)
		}
	}
	byKind := map[schema.GroupKind][]state.Ref{}
	for ref, there := range alive {
		if there {
			byKind[ref.GroupKind] = append(byKind[ref.GroupKind], ref)
		}
	}
	for _, refs := range byKind {
		slices.SortFunc(refs, func(a, b state.Ref) int {
			return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
		})
	}
	return byKind
}

// at is an object as it was at a step's rest.
func (r *reading) at(ref state.Ref, s step) state.Object {
	for i := s.to - 1; i >= 0; i-- {
		if c := r.run.History.Changes[i]; c.Ref == ref {
			return c.After
		}
	}
	return nil
}

// sortedKinds are the kinds in the order of their names.
func sortedKinds(byKind map[schema.GroupKind][]state.Ref) []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(byKind), func(a, b schema.GroupKind) int {
		return strings.Compare(kindName(a), kindName(b))
	})
}

// targetOf is Fault.Target for an object.
func (m *maker) targetOf(ref state.Ref) string {
	name := ref.Name
	if m.in.Canonical != nil {
		name = m.in.Canonical(ref.Namespace, ref.Name, m.read.typeOf(ref.GroupKind))
	} else if ref.Namespace != "" {
		name = ref.Namespace + "/" + name
	}
	if !strings.Contains(name, "/") {
		name = "/" + name // of the cluster
	}
	return kindName(ref.GroupKind) + "/" + name
}

// ownedFields are the fields that the controller set: of spec, or of the whole
// object if it has none. Who set what says the server; without that, the body of
// the creation does.
func (r *reading) ownedFields(ref state.Ref, o state.Object) []string {
	fields := map[string]bool{}
	metadata, _ := o["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	for _, v := range entries {
		entry, _ := v.(map[string]any)
		manager, _ := entry["manager"].(string)
		set, _ := entry["fieldsV1"].(map[string]any)
		if !r.managers[manager] || entry["subresource"] == "status" {
			continue
		}
		for _, f := range topFields(set, "f:") {
			fields[f] = true
		}
	}
	if said := r.saidFields(ref); len(said) > 0 {
		maps.DeleteFunc(fields, func(f string, _ bool) bool { return !said[f] })
	}
	if call := r.made[ref]; len(fields) == 0 && call != nil {
		if body, err := call.RequestObject(); err == nil {
			for _, f := range topFields(body, "") {
				fields[f] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(fields))
}

// saidFields are the fields of an object on which the controller has said
// something itself: the server counts a default as set by whoever left it out of a
// creation, and nobody promises to keep those.
func (r *reading) saidFields(ref state.Ref) map[string]bool {
	fields := map[string]bool{}
	for _, q := range r.requests {
		if !q.write || q.change < 0 || q.call.Target.Subresource != "" {
			continue
		}
		c := r.run.History.Changes[q.change]
		body, err := q.call.RequestObject()
		switch {
		case c.Ref != ref || c.After == nil:
		case err == nil && (c.Op == state.Created || q.call.Verb == "patch"):
			for _, f := range topFields(body, "") {
				fields[f] = fields[f] || saysSomething(valueAt(body, f))
			}
		default: // what it sends holds also what it has read
			for _, f := range topFields(c.After, "") {
				fields[f] = fields[f] || !reflect.DeepEqual(valueAt(c.Before, f), valueAt(c.After, f))
			}
		}
	}
	return fields
}

// said is what the controller said of a field when it made the object, or patched
// it; nil if it is not known.
func (r *reading) said(ref state.Ref, field string) (said any) {
	for _, q := range r.requests {
		if !q.write || q.change < 0 || q.call.Target.Subresource != "" {
			continue
		}
		c := r.run.History.Changes[q.change]
		if c.Ref != ref || c.Op != state.Created && q.call.Verb != "patch" {
			continue
		}
		if body, err := q.call.RequestObject(); err == nil && saysSomething(valueAt(body, field)) {
			said = valueAt(body, field)
		}
	}
	return said
}

// changeableBelow is the path below a field to what can be changed, if anything can:
// something that the controller has said, where that is known.
func (r *reading) changeableBelow(ref state.Ref, object state.Object, field string) (path []string, ok bool) {
	if said := r.said(ref, field); said != nil {
		return within(said, valueAt(object, field))
	}
	return nil, changeable(valueAt(object, field))
}

// within ends where the controller has said all that is there, as in the data of a
// ConfigMap: any of it will do. The labels of what it describes come last, since
// most are fixed by a selector.
func within(said, has any) (path []string, ok bool) {
	say, isMap := said.(map[string]any)
	have, _ := has.(map[string]any)
	if !isMap || flat(say) && len(say) == len(have) {
		return nil, saysSomething(said) && changeable(has)
	}
	keys := slices.Sorted(maps.Keys(say))
	if i := slices.Index(keys, "metadata"); i >= 0 {
		keys = append(slices.Delete(keys, i, i+1), "metadata")
	}
	for _, key := range keys {
		if strings.Contains(key, ".") { // no path can say it
			continue
		}
		if below, ok := within(say[key], have[key]); ok {
			return append([]string{key}, below...), true
		}
	}
	return nil, false
}

// flat says that there are no maps in a map.
func flat(m map[string]any) bool {
	for _, v := range m {
		if _, deeper := v.(map[string]any); deeper {
			return false
		}
	}
	return true
}

// saysSomething says that a value is more than what an encoder writes of nothing.
func saysSomething(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// topFields are the fields right below spec, or else the top ones that say
// something of their own. Prefix is how field sets mark fields.
func topFields(o map[string]any, prefix string) []string {
	var fields []string
	if spec, ok := o[prefix+"spec"].(map[string]any); ok {
		for key := range spec {
			if name, ok := strings.CutPrefix(key, prefix); ok {
				fields = append(fields, "spec."+name)
			}
		}
		return fields
	}
	for key := range o {
		name, ok := strings.CutPrefix(key, prefix)
		switch name {
		case "apiVersion", "kind", "metadata", "status", "type", "immutable", "stringData", ".":
			continue
		}
		if ok {
			fields = append(fields, name)
		}
	}
	return fields
}

// fixed are fields that the API server refuses to change: nobody can.
var fixed = map[string][]string{
	"deployments.apps":                       {"spec.selector"},
	"daemonsets.apps":                        {"spec.selector"},
	"replicasets.apps":                       {"spec.selector"},
	"statefulsets.apps":                      {"spec.selector", "spec.serviceName", "spec.podManagementPolicy", "spec.volumeClaimTemplates"},
	"jobs.batch":                             {"spec.selector", "spec.template", "spec.completions", "spec.completionMode", "spec.manualSelector"},
	"services":                               {"spec.clusterIP", "spec.clusterIPs"},
	"persistentvolumeclaims":                 {"spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeMode", "spec.volumeName", "spec.dataSource", "spec.dataSourceRef", "spec.resources"},
	"rolebindings.rbac.authorization.k8s.io": {"roleRef"},
	"clusterrolebindings.rbac.authorization.k8s.io":  {"roleRef"},
	"controllerrevisions.apps":                       {"data", "revision"},
	"customresourcedefinitions.apiextensions.k8s.io": {"spec.group", "spec.names", "spec.scope"},
}

// isFixed says that nobody can change a field of a type. Of a pod that is almost
// everything.
func isFixed(typ, field string) bool {
	return typ == "pods" || slices.Contains(fixed[typ], field)
}

// noChild are types that a controller writes about itself and others, and does not
// promise to keep.
func (r *reading) noChild(gk schema.GroupKind) bool {
	typ := r.typeOf(gk)
	target, _ := fault.ParseResource(typ)
	return !r.isPoint(&trace.Call{Verb: "delete", Target: target})
}
