package anchor

import (
	"bytes"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/manifest/permissions"
)

// Marker returns the line of the RBAC marker that grants a permission, or one on the same resource.
// For a subresource that no marker names, it returns the marker of the resource.
func (p *Project) Marker(verb, group, resource string) Line {
	var names []string
	for _, file := range p.goFiles() {
		if bytes.Contains(read(file), []byte("+kubebuilder:rbac:")) {
			names = append(names, file)
		}
	}
	files, err := permissions.Read(names)
	if err != nil || resource == "" {
		return Line{}
	}
	whole, _, _ := strings.Cut(resource, "/")
	for _, name := range []string{resource, whole} {
		if file, number := files.Line(permissions.Permission{Verb: verb, Group: group, Resource: name}); number > 0 {
			return Line{file, number}
		}
	}
	return Line{}
}
