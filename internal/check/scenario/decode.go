package scenario

import (
	"reflect"

	"go.yaml.in/yaml/v3"

	"github.com/koboshi-dev/koboshi/internal/strictyaml"
)

// Special lists the types in scenarios whose form in YAML differs from their Go type.
var Special = map[reflect.Type]strictyaml.Special{
	reflect.TypeFor[Manifest](): manifest,
	reflect.TypeFor[Duration](): duration,
}

func duration(d *strictyaml.Decoder, n *yaml.Node, path string, _ int) any {
	if n.Kind != yaml.ScalarNode {
		d.Complain(path, "must be a duration such as 1.5s")
		return nil
	}
	parsed, err := parseDuration(n.Value)
	if err != nil {
		d.Complain(path, "%v", err)
		return nil
	}
	return parsed
}

func manifest(d *strictyaml.Decoder, n *yaml.Node, path string, depth int) any {
	if n.Kind != yaml.MappingNode {
		d.Complain(path, "must be an object, or have the form {file: PATH}")
		return nil
	}
	object, _ := d.Free(n, path, depth).(map[string]any)
	if !namesFile(object) {
		return object
	}
	if file, isText := object["file"].(string); !isText || file == "" {
		d.Complain(path+".file", "must be a path")
		return nil
	}
	for key := range object {
		if key != "file" {
			d.Complain(strictyaml.Below(path, key), "cannot be combined with file; a manifest is either a file or an object")
			return nil
		}
	}
	return object
}
