package scenario

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Duration is a time.Duration in the form "1.5s".
type Duration time.Duration

func (d Duration) String() string { return time.Duration(d).String() }

// MarshalJSON writes the duration as text.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads text such as "1.5s". It rejects numbers, which have no unit.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("reading a duration: %s is not a string such as \"1.5s\"", data)
	}
	parsed, err := parseDuration(text)
	*d = parsed
	return err
}

func parseDuration(text string) (Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration; write a value such as 500ms, 1.5s or 2m", text)
	case d < 0:
		return 0, fmt.Errorf("%q is negative", text)
	}
	return Duration(d), nil
}

// onlyFile is the form of a Manifest that names a file.
type onlyFile struct {
	File string `json:"file"`
}

// MarshalJSON writes {file: PATH}, or the object.
func (m Manifest) MarshalJSON() ([]byte, error) {
	if m.File != "" {
		return json.Marshal(onlyFile{m.File})
	}
	return json.Marshal(m.Object)
}

// UnmarshalJSON is the inverse of MarshalJSON. A value with apiVersion or kind is
// an object, even if it also has a field named file.
func (m *Manifest) UnmarshalJSON(data []byte) error {
	var object map[string]any
	// Unlike encoding/json, this decoder keeps integers, as Kubernetes' libraries expect.
	if err := utiljson.Unmarshal(data, &object); err != nil {
		return fmt.Errorf("reading a manifest: %w", err)
	}
	if !namesFile(object) {
		*m = Manifest{Object: object}
		return nil
	}
	file, isText := object["file"].(string)
	if !isText || len(object) > 1 {
		return errors.New("reading a manifest: the field \"file\" must be a path, and must be the only field of the manifest")
	}
	*m = Manifest{File: file}
	return nil
}

func namesFile(object map[string]any) bool {
	_, file := object["file"]
	_, version := object["apiVersion"]
	_, kind := object["kind"]
	return file && !version && !kind
}

// objects returns copies of the objects of the manifest. It replaces a List with its
// items.
func (m Manifest) objects() ([]map[string]any, error) {
	if m.File == "" {
		return items(runtime.DeepCopyJSON(m.Object))
	}
	data, err := readManifest(m.File)
	if err != nil {
		return nil, err
	}
	var all []map[string]any
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var object map[string]any
		switch err := decoder.Decode(&object); {
		case errors.Is(err, io.EOF) && len(all) == 0:
			return nil, fmt.Errorf("%s contains no object", m.File)
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, fmt.Errorf("%s: %w", m.File, err)
		case len(object) == 0:
			continue
		}
		more, err := items(wholeNumbers(object).(map[string]any))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.File, err)
		}
		all = append(all, more...)
	}
}

// mostManifest is the maximum size of a file of manifests, in bytes.
const mostManifest = 16 << 20

func readManifest(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%s does not exist; paths are relative to the file that names them", file)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file", file)
	case info.Size() > mostManifest:
		return nil, fmt.Errorf("%s has %d bytes; the maximum is %d", file, info.Size(), mostManifest)
	}
	return os.ReadFile(file)
}

// items returns the items of a List, or the object itself.
func items(object map[string]any) ([]map[string]any, error) {
	list, isList := object["items"].([]any)
	if kind, _ := object["kind"].(string); !isList || !strings.HasSuffix(kind, "List") {
		return []map[string]any{object}, nil
	}
	all := make([]map[string]any, 0, len(list))
	for i, item := range list {
		o, isObject := item.(map[string]any)
		if !isObject {
			return nil, fmt.Errorf("items[%d] is not an object", i)
		}
		all = append(all, o)
	}
	return all, nil
}

// wholeNumbers converts floats with integer values to int64. YAML decoders return
// all numbers as floats, but deep copies and patches need integers.
func wholeNumbers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = wholeNumbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = wholeNumbers(v[i])
		}
	case float64:
		if v >= -1<<53 && v <= 1<<53 && v == float64(int64(v)) {
			return int64(v)
		}
	}
	return value
}

// Inline returns the scenario with each file path replaced by the objects in that file, so
// that the scenario can be stored without its files.
func (s *Scenario) Inline() (*Scenario, error) {
	out, err := s.clone()
	if err != nil {
		return nil, err
	}
	if out.Given, err = inline(out.Given); err != nil {
		return nil, fmt.Errorf("scenario %s: given: %w", s.Name, err)
	}
	for i := range out.Steps {
		step := &out.Steps[i]
		if step.Apply, err = inline(step.Apply); err != nil {
			return nil, fmt.Errorf("scenario %s: step %s: apply: %w", s.Name, step.Name, err)
		}
	}
	return out, nil
}

func inline(manifests []Manifest) ([]Manifest, error) {
	var all []Manifest
	for _, m := range manifests {
		objects, err := m.objects()
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			all = append(all, Manifest{Object: o})
		}
	}
	return all, nil
}

// clone returns a deep copy.
func (s *Scenario) clone() (*Scenario, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("copying scenario %s: %w", s.Name, err)
	}
	out := &Scenario{}
	if err := json.Unmarshal(data, out); err != nil {
		return nil, fmt.Errorf("copying scenario %s: %w", s.Name, err)
	}
	out.Sample, out.Seeded = s.Sample, s.Seeded
	return out, nil
}

// resolve turns paths relative to the scenario file into paths relative to the working
// directory.
func (s *Scenario) resolve(folder string) {
	at := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(folder, path)
	}
	s.Dir = at(s.Dir)
	for i := range s.Endpoints {
		s.Endpoints[i].Dir = at(s.Endpoints[i].Dir)
	}
	for i := range s.Given {
		if file := &s.Given[i].File; *file != "" {
			*file = at(*file)
		}
	}
	for i := range s.Steps {
		for j := range s.Steps[i].Apply {
			if file := &s.Steps[i].Apply[j].File; *file != "" {
				*file = at(*file)
			}
		}
	}
}

// ReadManifests reads the objects in a file.
func ReadManifests(file string) ([]Manifest, error) {
	return inline([]Manifest{{File: file}})
}

// SameObject reports whether two manifests describe the same object.
func (m Manifest) SameObject(other Manifest) bool {
	a, b := refOf(m.Object), refOf(other.Object)
	return a.Kind == b.Kind && a.Name == b.Name && inDefault(a.Namespace) == inDefault(b.Namespace) && groupKind(m.Object) == groupKind(other.Object)
}

func inDefault(namespace string) string { return cmp.Or(namespace, "default") }
