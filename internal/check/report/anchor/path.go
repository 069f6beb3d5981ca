package anchor

import "strings"

// parts splits the path of a field, such as status.conditions[Ready].message or data[tls.crt]. A
// part in brackets is the key of a map or names an element of a list.
func parts(path string) []string {
	var all []string
	for path != "" {
		switch path[0] {
		case '.':
			path = path[1:]
		case '[':
			inside, rest, closed := strings.Cut(path[1:], "]")
			if !closed {
				return nil
			}
			all, path = append(all, inside), rest
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			all, path = append(all, path[:end]), path[end:]
		}
	}
	return all
}

// object splits the name of an object, "Kind.group namespace/name".
func object(text string) (kind, group, namespace, name string) {
	full, name, _ := strings.Cut(text, " ")
	kind, group, _ = strings.Cut(full, ".")
	if space, rest, found := strings.Cut(name, "/"); found {
		namespace, name = space, rest
	}
	return kind, group, namespace, name
}
