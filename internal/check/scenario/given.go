package scenario

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// sampled is an object of a sample.
type sampled struct {
	file   string
	object unstructured.Unstructured
	// primary reports whether the controller reconciles the kind of the object.
	primary bool
}

func (s *sampled) kind() string { return groupKind(s.object.Object) }

// groupKind returns the kind of an object as "Kind.group", as in Subject.Primary.
func groupKind(object map[string]any) string {
	r := refOf(object)
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind().String()
}

// library holds all objects of all samples.
type library []*sampled

// needs returns the objects that must exist before a sample is created, in the order of
// their dependencies: the objects that the sample names directly or indirectly, objects
// from the same file that are not reconciled themselves, and the namespaces.
func (l library) needs(start *sampled) []*sampled {
	var found []*sampled
	visited := map[*sampled]bool{}
	var visit func(s *sampled)
	visit = func(s *sampled) {
		if visited[s] {
			return
		}
		visited[s] = true
		for _, other := range l {
			if other != s && !sameObject(other, start) && l.needed(s, other) {
				visit(other)
			}
		}
		if s != start {
			found = append(found, s)
		}
	}
	visit(start)
	// Namespaces and configuration come first. A stable sort keeps dependencies in order.
	slices.SortStableFunc(found, func(a, b *sampled) int { return order(a) - order(b) })
	return found
}

func order(s *sampled) int {
	switch {
	case s.kind() == "Namespace":
		return 0
	case s.primary:
		return 2
	}
	return 1
}

// sameObject reports whether two samples describe the same object, perhaps in two versions,
// so that applying one sample would overwrite the other.
func sameObject(a, b *sampled) bool {
	return a.kind() == b.kind() && a.object.GetName() == b.object.GetName() && a.object.GetNamespace() == b.object.GetNamespace()
}

func (l library) needed(by, other *sampled) bool {
	switch {
	case other.kind() == "Namespace":
		return other.object.GetName() == by.object.GetNamespace() || other.file == by.file && by.primary
	case other.file == by.file && !other.primary && by.primary:
		return true
	}
	// If several files contain an object with the same kind and name, only the first one is needed.
	first := slices.IndexFunc(l, func(s *sampled) bool { return sameObject(s, other) })
	return l[first] == other && (refersTo(by.object.Object, other) || l.configures(by, other))
}

// configures reports whether a sample names a Secret or a ConfigMap in a field that does not say which
// kind it refers to, such as spec.configuration.name, and there is no other object that it could mean.
func (l library) configures(by, other *sampled) bool {
	if kind := other.kind(); kind != "Secret" && kind != "ConfigMap" || !refersBy(by.object.Object, other, anyPath) {
		return false
	}
	return !slices.ContainsFunc(l, func(s *sampled) bool {
		return s != other && !sameObject(s, other) && refersTo(by.object.Object, s) && s.object.GetName() == other.object.GetName()
	})
}

// reference matches the names of fields that refer to an object.
var reference = regexp.MustCompile(`(?i)(^|[a-z])(name|ref|refs|names|from)$`)

// refersTo reports whether a field of object that is meant for references contains the name of
// other.
func refersTo(object map[string]any, other *sampled) bool { return refersBy(object, other, alike) }

// anyPath reports that a field at any path can refer to the kind.
func anyPath([]string, string) bool { return true }

// refersBy reports whether a field that is meant for references contains the name of other, and can
// refer to its kind.
func refersBy(object map[string]any, other *sampled, can func(path []string, kind string) bool) bool {
	found := false
	for _, part := range sortedKeys(object) {
		if part == "metadata" || part == "apiVersion" || part == "kind" || part == "status" {
			continue
		}
		eachReference(object[part], part, nil, func(path []string, name string) {
			found = found || name == other.object.GetName() && can(path, other.object.GetKind())
		})
	}
	return found
}

// eachReference calls do with the path and the text of each field that is meant for
// references.
func eachReference(value any, field string, path []string, do func([]string, string)) {
	path = append(slices.Clone(path), field)
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			eachReference(v[key], key, path, do)
		}
	case []any:
		for _, item := range v {
			eachReference(item, field, path[:len(path)-1], do)
		}
	case string:
		if reference.MatchString(field) {
			do(path, v)
		}
	}
}

// alike reports whether a field at the path can refer to the kind. For example,
// storeRef.name can refer to an ObjectStore, and configMap.name to a ConfigMap. A path
// without a hint, such as spec.ref.name, can refer to any kind.
func alike(path []string, kind string) bool {
	plain := true
	for _, part := range path {
		word := strings.ToLower(part)
		for _, end := range []string{"names", "name", "refs", "ref", "from", "reference"} {
			word = strings.TrimSuffix(word, end)
		}
		switch {
		case word == "" || word == "spec" || word == "template":
		case strings.HasSuffix(word, strings.ToLower(kind)), strings.HasSuffix(strings.ToLower(kind), word):
			return true
		default:
			plain = false
		}
	}
	return plain
}

// namespaces returns the namespaces that the objects use, except those that every cluster
// has or that are among the objects.
func namespaces(objects []*sampled) []Manifest {
	var all []Manifest
	made := map[string]bool{"": true, "default": true, "kube-system": true, "kube-public": true, "kube-node-lease": true}
	for _, s := range objects {
		if s.kind() == "Namespace" {
			made[s.object.GetName()] = true
		}
	}
	for _, s := range objects {
		if name := s.object.GetNamespace(); !made[name] {
			made[name] = true
			all = append(all, Manifest{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}})
		}
	}
	return all
}

// given returns the manifests of all objects that a sample needs.
func (l library) given(start *sampled) []Manifest {
	needed := l.needs(start)
	all := namespaces(append([]*sampled{start}, needed...))
	for _, s := range needed {
		all = append(all, Manifest{Object: s.object.DeepCopy().Object})
	}
	return all
}

// twins copies each given object to which a sample refers, and gives the copy a different
// name, so that a scenario can change the reference to another existing object. twins
// returns the manifests of the copies by name, and the new name for each old name.
func (l library) twins(start *sampled) (map[string]Manifest, map[string]string) {
	twins, renamed := map[string]Manifest{}, map[string]string{}
	for _, s := range l.needs(start) {
		if s.primary || s.kind() == "Namespace" || !refersTo(start.object.Object, s) {
			continue
		}
		twin := s.object.DeepCopy()
		twin.SetName(s.object.GetName() + "-b")
		twins[twin.GetName()] = Manifest{Object: twin.Object}
		renamed[s.object.GetName()] = twin.GetName()
	}
	return twins, renamed
}
