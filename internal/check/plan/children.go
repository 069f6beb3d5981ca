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

// children finds the objects that the controller has made: those created by one of its
// requests, and those controlled by a primary resource. A controller need not repair
// objects that other clients made.
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

// managerOf returns the field manager of a write: the manager that the write names, or otherwise
// the first part of the user agent, as in the API server.
func managerOf(call *trace.Call) string {
	_, query, _ := strings.Cut(call.Path, "?")
	if values, err := url.ParseQuery(query); err == nil && values.Has("fieldManager") {
		return values.Get("fieldManager")
	}
	name, _, _ := strings.Cut(call.UserAgent, "/")
	return name
}

// controllerOf returns the kind of the owner that controls an object, as "Kind.group".
func controllerOf(o state.Object) string {
	for _, owner := range o.Owners() {
		if owner.Controller {
			return schema.GroupKind{Group: owner.Group(), Kind: owner.Kind}.String()
		}
	}
	return ""
}

// standing returns the controller's objects that exist when a step is at rest and are not
// being deleted, grouped by kind.
func (r *reading) standing(s step) map[schema.GroupKind][]state.Ref {
	alive := map[state.Ref]bool{}
	for _, c := range r.run.History.Changes[:s.to] {
		if _, ok := r.made[c.Ref]; ok {
			alive[c.Ref] = c.Op != state.Deleted && !c.After.Deleting()
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

// at returns the state of an object when a step was at rest.
func (r *reading) at(ref state.Ref, s step) state.Object {
	for i := s.to - 1; i >= 0; i-- {
		if c := r.run.History.Changes[i]; c.Ref == ref {
			return c.After
		}
	}
	return nil
}

// sortedKinds returns the kinds ordered by name.
func sortedKinds(byKind map[schema.GroupKind][]state.Ref) []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(byKind), func(a, b schema.GroupKind) int {
		return strings.Compare(a.String(), b.String())
	})
}

// targetOf returns Fault.Target for an object.
func (m *maker) targetOf(ref state.Ref) string {
	name := ref.Name
	if m.in.Canonical != nil {
		name = m.in.Canonical(ref.Namespace, ref.Name, m.read.typeOf(ref.GroupKind))
	} else if ref.Namespace != "" {
		name = ref.Namespace + "/" + name
	}
	if !strings.Contains(name, "/") {
		name = "/" + name // it is cluster-scoped
	}
	return ref.String() + "/" + name
}

// ownedFields returns the fields of spec that the controller set. For an object without a
// spec, it returns the top-level fields that the controller set. It reads the fields from
// managedFields if present, otherwise from the request that created the object.
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

// saidFields returns the fields of an object to which the controller itself gave a value.
// The server attributes the default of an omitted field to the client that created the
// object, but no controller promises to maintain such a default.
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
		default: // an update also contains fields that the controller only read
			for _, f := range topFields(c.After, "") {
				fields[f] = fields[f] || !reflect.DeepEqual(valueAt(c.Before, f), valueAt(c.After, f))
			}
		}
	}
	return fields
}

// said returns the value that the controller gave a field when it created or patched the
// object, or nil if the value is unknown.
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

// changeableBelow finds a changeable value below a field, and returns the path from the field to
// this value. If the values that the controller set are known, it chooses one of them.
func (r *reading) changeableBelow(ref state.Ref, object state.Object, field string) (path []string, ok bool) {
	if said := r.said(ref, field); said != nil {
		return within(said, valueAt(object, field))
	}
	return nil, changeable(valueAt(object, field))
}

// within descends into a field until it reaches a value or a flat map that came entirely
// from the controller, such as the data of a ConfigMap. In a flat map, any value will do.
// The metadata of a template is tried last, because most of its labels cannot be changed: a
// selector requires them.
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
		if strings.Contains(key, ".") { // a path cannot express it
			continue
		}
		if below, ok := within(say[key], have[key]); ok {
			return append([]string{key}, below...), true
		}
	}
	return nil, false
}

// flat reports whether a map holds no maps.
func flat(m map[string]any) bool {
	for _, v := range m {
		if _, deeper := v.(map[string]any); deeper {
			return false
		}
	}
	return true
}

// saysSomething reports whether a value is neither null nor empty. For an unset field, an
// encoder may write null or an empty value.
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

// topFields returns the fields directly below spec or, without a spec, the top-level
// fields with content. In managedFields, the names of fields have a prefix.
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

// fixed lists, by type, the fields that the API server refuses to change.
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

// isFixed reports whether the API server refuses to change a field of a type. The API
// server refuses to change almost every field of a Pod.
func isFixed(typ, field string) bool {
	return typ == "pods" || slices.Contains(fixed[typ], field)
}

// noChild reports whether objects of a kind are bookkeeping, which a controller does not
// promise to maintain.
func (r *reading) noChild(gk schema.GroupKind) bool {
	typ := r.typeOf(gk)
	target, _ := fault.ParseResource(typ)
	return !r.isPoint(&trace.Call{Verb: "delete", Target: target})
}
