// Package choices defines the section `ship` of koboshi.yaml: what a project's image is called, for
// which platforms it is built, and what is in it.
package choices

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/koboshi-dev/koboshi/internal/strictyaml"
)

// Choices is the section. The zero value changes nothing.
type Choices struct {
	// Image is the name of the image, such as registry.example.com/team/operator:v1.2.0.
	Image string `json:"image,omitempty"`
	// Platforms lists the platforms of the image; none means linux/amd64 and linux/arm64.
	Platforms []string `json:"platforms,omitempty"`
	// Base is the image to which programs are added; empty means an image without files.
	Base string `json:"base,omitempty"`
	// Programs maps the name of a program in the image, besides the manager, to the folder of its
	// main package in the project.
	Programs map[string]string `json:"programs,omitempty"`
}

// Complaints returns the mistakes in the section, which stands at a path of the file.
func (c *Choices) Complaints(at string) (all []strictyaml.Complaint) {
	if _, err := name.NewTag(c.Image); c.Image != "" && err != nil {
		all = append(all, strictyaml.Complaint{Path: at + ".image", Message: fmt.Sprintf("%q is not the name of an image; write it as registry.example.com/team/operator:v1.2.0", c.Image)})
	}
	if _, err := name.ParseReference(c.Base); c.Base != "" && err != nil {
		all = append(all, strictyaml.Complaint{Path: at + ".base", Message: fmt.Sprintf("%q is not the name of an image; write it as gcr.io/distroless/static:nonroot", c.Base)})
	}
	for _, program := range slices.Sorted(maps.Keys(c.Programs)) {
		if program != path.Base(program) || strings.TrimLeft(program, ".") == "" {
			all = append(all, strictyaml.Complaint{Path: at + ".programs." + program, Message: fmt.Sprintf("%q is not the name of a file; programs are in the root folder of the image", program)})
		}
	}
	return all
}
