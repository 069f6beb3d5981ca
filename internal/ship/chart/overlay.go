package chart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/koboshi-dev/koboshi/internal/spelling"
)

// Overlay is the folder of a project with the person's own files for the chart.
const Overlay = "config/chart"

const (
	chartFile  = "Chart.yaml"
	valuesFile = "values.yaml"
	schemaFile = "values.schema.json"
)

// merge adds the person's files to those of a chart. Three files are merged with the generated ones,
// so that they need only the differences; all others replace them.
func merge(files, overlay map[string][]byte) error {
	for _, path := range slices.Sorted(maps.Keys(overlay)) {
		var err error
		switch path {
		case chartFile, valuesFile:
			files[path], err = mergeYAML(files[path], overlay[path])
		case schemaFile:
			files[path], err = mergeJSON(files[path], overlay[path])
		default:
			files[path] = overlay[path]
		}
		if err != nil {
			return fmt.Errorf("%s/%s: %w", Overlay, path, err)
		}
	}
	if overlay[valuesFile] == nil {
		return nil
	}
	return admitValues(files, overlay)
}

// mergeYAML puts the fields of an object into another, and keeps the comments of both.
func mergeYAML(below, above []byte) ([]byte, error) {
	var base, changes yaml.Node
	if err := yaml.Unmarshal(below, &base); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(above, &changes); err != nil {
		return nil, err
	}
	if len(changes.Content) == 0 { // only comments
		return below, nil
	}
	if changes.Content[0].Kind != yaml.MappingNode || len(base.Content) == 0 {
		return nil, errors.New("the file has no fields at its top level")
	}
	mergeNodes(base.Content[0], changes.Content[0])
	return encoded(&base)
}

func mergeNodes(below, above *yaml.Node) {
	for i := 0; i+1 < len(above.Content); i += 2 {
		key, value := above.Content[i], above.Content[i+1]
		at := position(below, key.Value)
		switch {
		case at < 0:
			below.Content = append(below.Content, key, value)
		case value.Kind == yaml.MappingNode && below.Content[at+1].Kind == yaml.MappingNode:
			below.Content[at+1].Style = 0
			mergeNodes(below.Content[at+1], value)
		default:
			if key.HeadComment != "" {
				below.Content[at].HeadComment = key.HeadComment
			}
			below.Content[at+1] = value
		}
	}
}

// mergeJSON puts the fields of an object into another.
func mergeJSON(below, above []byte) ([]byte, error) {
	var base, changes map[string]any
	if err := json.Unmarshal(below, &base); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(above, &changes); err != nil {
		return nil, err
	}
	mergeFields(base, changes)
	return indentedJSON(base)
}

func mergeFields(below, above map[string]any) {
	for name, value := range above {
		inner, ok := value.(map[string]any)
		if old, isObject := below[name].(map[string]any); ok && isObject {
			mergeFields(old, inner)
			continue
		}
		below[name] = value
	}
}

// admitValues adds the person's own values to the schema. A value that no file of the person uses is
// a misspelt one of the generated values.
func admitValues(files, overlay map[string][]byte) error {
	var values, schema map[string]any
	if err := yaml.Unmarshal(overlay[valuesFile], &values); err != nil {
		return fmt.Errorf("%s/%s: %w", Overlay, valuesFile, err)
	}
	if err := json.Unmarshal(files[schemaFile], &schema); err != nil {
		return fmt.Errorf("%s/%s: %w", Overlay, schemaFile, err)
	}
	if err := admit(values, schema, "", overlay); err != nil {
		return err
	}
	text, err := indentedJSON(schema)
	files[schemaFile] = text
	return err
}

func admit(values, schema map[string]any, at string, overlay map[string][]byte) error {
	properties, ok := schema["properties"].(map[string]any)
	if !ok || schema["additionalProperties"] != false {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if known, ok := properties[name].(map[string]any); ok {
			inner, _ := values[name].(map[string]any)
			if err := admit(inner, known, at+name+".", overlay); err != nil {
				return err
			}
			continue
		}
		if !mentions(overlay, name) {
			return unknownValue(at, name, properties)
		}
		properties[name] = map[string]any{}
	}
	return nil
}

// mentions reports whether a file of the person, such as a template, uses a value.
func mentions(overlay map[string][]byte, name string) bool {
	for path, text := range overlay {
		if path != valuesFile && bytes.Contains(text, []byte(name)) {
			return true
		}
	}
	return false
}

func unknownValue(at, name string, properties map[string]any) error {
	nearest := slices.MinFunc(slices.Sorted(maps.Keys(properties)), func(a, b string) int {
		return spelling.Distance(name, a) - spelling.Distance(name, b)
	})
	hint := "use it in a template in " + Overlay
	if spelling.Distance(name, nearest) <= 2 {
		hint = "did you mean " + at + nearest + "?"
	}
	return fmt.Errorf("%s/%s: the chart has no value %s%s, and no other file in this folder uses it; %s", Overlay, valuesFile, at, name, hint)
}
