// Package settings reads koboshi.yaml, the file in which a project changes how Koboshi works for
// it. Each verb of Koboshi that has settings has a section, which another package defines.
//
//	koboshi.yaml ──Find, Load──▶ File ──▶ File.Check, …
package settings

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/koboshi-dev/koboshi/internal/check/opinions"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/ship/choices"
	"github.com/koboshi-dev/koboshi/internal/strictyaml"
)

// Name is the name of the file, beside the file PROJECT.
const Name = "koboshi.yaml"

// File is the content of the file. The zero value changes nothing.
type File struct {
	// Path is the path of the file; empty means that there is no file.
	Path string `json:"-"`
	// Check is the section of koboshi check.
	Check opinions.Opinions `json:"check,omitzero"`
	// Ship is the section of koboshi ship.
	Ship choices.Choices `json:"ship,omitzero"`
}

//go:embed schema.json
var schemaJSON []byte

// Schema returns the JSON schema (draft 7) of the file, for editors. Parse also finds
// mistakes that a schema cannot describe.
func Schema() []byte { return slices.Clone(schemaJSON) }

// Find reads the file in a project's folder. If there is no file, the result changes nothing.
func Find(dir string) (*File, error) {
	f, err := Load(filepath.Join(dir, Name))
	if errors.Is(err, fs.ErrNotExist) {
		return &File{}, nil
	}
	return f, err
}

// Load reads a file.
func Load(path string) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading settings: %w", err)
	}
	return Parse(path, data)
}

// Parse reads the settings in a text. path is the path of the file, as it appears in errors.
// If it is relative to the working directory, so are the paths in the result.
func Parse(path string, data []byte) (*File, error) {
	documents, line, err := strictyaml.Documents(data)
	if err != nil {
		return nil, strictyaml.Join(path, nil, []strictyaml.Complaint{{Message: err.Error(), Line: line}})
	}
	f := &File{Path: path}
	switch len(documents) {
	case 0:
		return f, nil
	case 1:
	default:
		return nil, strictyaml.Join(path, nil, []strictyaml.Complaint{{Message: "the file has a second document; put everything into the first one", Line: documents[1].Line}})
	}
	if complaints, lines := f.decode(documents[0]); len(complaints) > 0 {
		return nil, strictyaml.Join(path, lines, complaints)
	}
	f.Check.Resolve(filepath.Dir(path))
	return f, nil
}

func (f *File) decode(n *yaml.Node) ([]strictyaml.Complaint, map[string]int) {
	d := strictyaml.New(n, scenario.Special)
	value := d.Typed(n, reflect.TypeFor[File](), "", 0)
	if len(d.Complaints) > 0 {
		return d.Complaints, d.Lines
	}
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, f)
	}
	if err != nil {
		return []strictyaml.Complaint{{Message: strings.TrimPrefix(err.Error(), "json: ")}}, d.Lines
	}
	return slices.Concat(f.Check.Complaints("check"), f.Ship.Complaints("ship")), d.Lines
}
