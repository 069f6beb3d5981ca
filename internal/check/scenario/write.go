package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// YAML returns the scenario as a file for people to edit. comment is written at the top. Its
// lines must not begin with a #.
func (s *Scenario) YAML(comment string) ([]byte, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("writing scenario %s: %w", s.Name, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	node, err := nodeOf(decoder)
	if err != nil {
		return nil, fmt.Errorf("writing scenario %s: %w", s.Name, err)
	}
	var out bytes.Buffer
	for line := range strings.Lines(comment) {
		out.WriteString(strings.TrimRight("# "+strings.TrimSuffix(line, "\n"), " ") + "\n")
	}
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := encoder.Encode(node); err != nil {
		return nil, fmt.Errorf("writing scenario %s: %w", s.Name, err)
	}
	return out.Bytes(), encoder.Close()
}

// nodeOf turns the next JSON value into YAML, and keeps the order of the keys.
func nodeOf(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		if t == '[' {
			n = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		}
		return n, contentOf(d, n)
	case string:
		return textNode(t), nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(t.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: t.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(t)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}

// contentOf reads the content of a mapping or a list, including its end. The keys of a
// mapping are strings like any other value.
func contentOf(d *json.Decoder, n *yaml.Node) error {
	for d.More() {
		inner, err := nodeOf(d)
		if err != nil {
			return err
		}
		n.Content = append(n.Content, inner)
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle // an empty block would be null
	}
	if _, err := d.Token(); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// textNode quotes the key that merges mappings, and the words that are booleans in YAML 1.1,
// because Parse reads manifests as kubectl does. The encoder quotes everything else that needs
// quotes.
func textNode(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	switch strings.ToLower(text) {
	case "yes", "on", "y", "no", "off", "n", "<<":
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
