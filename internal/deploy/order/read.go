// Package order reads manifests, and decides in which order their objects are applied.
//
//	namespaces, CRDs ──▶ everything else ──▶ webhook configurations ──▶ objects of the CRDs
package order

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
)

// extensions are those of the files in a folder that are read, as by kubectl.
var extensions = []string{".yaml", ".yml", ".json"}

// Read reads manifests: files, folders without their subfolders, or - for the standard input.
func Read(paths []string, stdin io.Reader) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	for _, path := range paths {
		files, err := filesOf(path)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			objects, err := readFile(file, stdin)
			if err != nil {
				return nil, err
			}
			all = append(all, objects...)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the manifest has no objects; name a file with -f")
	}
	return all, nil
}

func filesOf(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if !e.IsDir() && slices.Contains(extensions, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, nil
}

func readFile(file string, stdin io.Reader) ([]unstructured.Unstructured, error) {
	if file == "-" {
		file = "standard input"
		data, err := io.ReadAll(stdin)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		return Parse(file, data)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, data)
}

// Parse parses the YAML or JSON documents of a file, whose name is used in errors.
func Parse(file string, data []byte) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var raw runtime.RawExtension
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		if raw.Raw = bytes.TrimSpace(raw.Raw); len(raw.Raw) == 0 || string(raw.Raw) == "null" {
			continue
		}
		objects, err := decode(raw.Raw)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		all = append(all, objects...)
	}
}

// decode returns the object of a document, or the objects of a list.
func decode(document []byte) ([]unstructured.Unstructured, error) {
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(document); err != nil {
		return nil, err
	}
	if !u.IsList() {
		if u.GetName() == "" {
			return nil, fmt.Errorf("a %s has no name; add metadata.name, because only objects with a name can be applied again", u.GetKind())
		}
		return []unstructured.Unstructured{u}, nil
	}
	list, err := u.ToList()
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Complete sets the namespace of each namespaced object that has none, and removes the namespace
// of each object that cannot have one. It refuses lists that name an object twice.
func Complete(c *cluster.Cluster, objects []unstructured.Unstructured) error {
	defined := definitions(objects)
	seen := map[cluster.ID]bool{}
	for i := range objects {
		u := &objects[i]
		namespaced, ok := defined[u.GroupVersionKind().GroupKind()]
		if !ok {
			var err error
			if namespaced, err = c.Namespaced(u.GroupVersionKind()); err != nil {
				return fmt.Errorf("looking for the kind of %s: %w; install its CRD first, or add it to the manifest", cluster.IDOf(u), err)
			}
		}
		switch {
		case !namespaced:
			u.SetNamespace("")
		case u.GetNamespace() == "":
			u.SetNamespace(c.Namespace)
		}
		id := cluster.IDOf(u)
		if seen[id] {
			return fmt.Errorf("%s is in the manifest twice; remove one of the two", id)
		}
		seen[id] = true
	}
	return nil
}
