package exposure

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// inContainer matches the paths of texts that are part of the definition of a container.
var inContainer = regexp.MustCompile(`(^|\.)(containers|initContainers|ephemeralContainers)\[\d+\]\.(env\[\d+\]\.value|args\[\d+\]|command\[\d+\])$`)

// open reports whether a field is a place for values that are not secret: a ConfigMap, an Event, a
// status, an annotation, or the environment or the arguments of a container.
func open(ref state.Ref, path string) bool {
	switch {
	case ref.Kind == "ConfigMap" && ref.Group == "" && (strings.HasPrefix(path, "data") || strings.HasPrefix(path, "binaryData")):
		return true
	case ref.Kind == "Event" && (ref.Group == "" || ref.Group == "events.k8s.io"):
		return true
	}
	return strings.HasPrefix(path, "status.") || strings.HasPrefix(path, "metadata.annotations") || inContainer.MatchString(path)
}

// eachText calls a function for each text in a JSON value, in the order of the keys. It
// omits managedFields, which hold only names.
func eachText(v any, path string, visit func(path, text string)) {
	switch typed := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(typed))
		for key := range typed {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			if path == "metadata" && key == "managedFields" {
				continue
			}
			eachText(typed[key], join(path, key), visit)
		}
	case []any:
		for i, item := range typed {
			eachText(item, path+"["+strconv.Itoa(i)+"]", visit)
		}
	case string:
		visit(path, typed)
	}
}

func join(path, key string) string {
	switch {
	case path == "":
		return key
	case strings.ContainsAny(key, "./"):
		return path + "[" + key + "]"
	}
	return path + "." + key
}
