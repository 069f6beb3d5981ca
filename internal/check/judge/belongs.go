package judge

import (
	"regexp"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// belongs reports whether an object that the controller made belongs to a resource. The object
// belongs to the resource if the resource owns it, if one of its labels or annotations names the
// resource, if either of the two refers to the other in a field, or if its name is derived from the
// resource's name and the resource's name is no common word.
//
// A text that merely contains the resource's name proves nothing, because many resources are
// called example or test: www.example.com does not refer to a resource named example.
func belongs(object, resource state.Object) bool {
	if slices.ContainsFunc(object.Owners(), func(o state.Owner) bool { return o.UID == resource.Metadata("uid") }) {
		return true
	}
	marks := identities(resource)
	for _, keys := range []map[string]any{object.Labels(), object.Annotations()} {
		for _, value := range keys {
			if text, _ := value.(string); slices.Contains(marks, text) {
				return true
			}
		}
	}
	return refers(map[string]any(content(object)), "", marks) ||
		refers(fieldsOf(resource), "", identities(object)) || derived(object, resource)
}

// identities returns the texts that identify an object in a label or a reference.
func identities(object state.Object) (all []string) {
	name, space := object.Metadata("name"), object.Metadata("namespace")
	if name == "" {
		return nil
	}
	all = append(all, name)
	if uid := object.Metadata("uid"); uid != "" {
		all = append(all, uid)
	}
	if space != "" {
		for _, between := range []string{"/", ".", "-", "_"} {
			all = append(all, space+between+name)
		}
	}
	return all
}

// fieldsOf returns an object without its metadata. The status of a resource often names what
// was made for it.
func fieldsOf(object state.Object) map[string]any {
	fields := map[string]any{}
	for key, value := range object {
		if key != "metadata" && key != "kind" && key != "apiVersion" {
			fields[key] = value
		}
	}
	return fields
}

// referring matches the last words of keys that hold a reference, such as name, ownerRef,
// secretName or bucket_name.
var referring = regexp.MustCompile(`(?i)(name|ref|reference|owner|parent|uid)s?$`)

// refers reports whether a field that holds a reference has one of the identities as its
// value.
func refers(v any, key string, identities []string) bool {
	switch typed := v.(type) {
	case map[string]any:
		for key, item := range typed {
			if refers(item, key, identities) {
				return true
			}
		}
	case []any:
		for _, item := range typed {
			if refers(item, key, identities) {
				return true
			}
		}
	case string:
		return referring.MatchString(key) && slices.Contains(identities, typed)
	}
	return false
}

// derived reports whether the name of an object is the name of a resource, or begins with it.
// derived returns false if the resource's name consists of a single word.
func derived(object, resource state.Object) bool {
	name := resource.Metadata("name")
	return strings.Contains(name, "-") && (object.Metadata("name") == name || strings.HasPrefix(object.Metadata("name"), name+"-"))
}
