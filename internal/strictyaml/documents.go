package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// Documents reads the documents that are not empty. If the text is not YAML, line is the
// line of the mistake, or 0 if the line is unknown.
func Documents(data []byte) (all []*yaml.Node, line int, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var n yaml.Node
		err := decoder.Decode(&n)
		if errors.Is(err, io.EOF) {
			return all, 0, nil
		}
		if err != nil {
			if found := yamlLine.FindStringSubmatch(err.Error()); found != nil {
				line, _ = strconv.Atoi(found[1])
			}
			return nil, line, errors.New(yamlLine.ReplaceAllString(err.Error(), ""))
		}
		if n.Kind == yaml.DocumentNode && len(n.Content) == 1 && !IsNull(n.Content[0]) {
			all = append(all, n.Content[0])
		}
	}
}
