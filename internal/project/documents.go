package project

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// document is an object with its origin.
type document struct {
	File   string
	Number int // number of the document in the file, from 1; 0 if unknown
	Object unstructured.Unstructured

	// foreign means that the object is a CRD of another project.
	foreign bool
}

// errorf returns an error that names the file, the document and the object.
func (d document) errorf(format string, args ...any) error {
	where := d.File
	if d.Number > 0 {
		where += fmt.Sprintf(": document %d", d.Number)
	}
	return fmt.Errorf("%s: %s: %w", where, d.String(), fmt.Errorf(format, args...))
}

// String names the object.
func (d document) String() string {
	name := d.Object.GetName()
	if namespace := d.Object.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return d.Object.GetKind() + " " + name
}

// renderFirst is the next action for a file that is a template.
const renderFirst = "name its chart with " + flagHelm + ", or fill it in and name the result with " + flagManifests

// parse reads the documents of a YAML or JSON file. It expands Lists and skips
// empty documents. If strict is set, a repeated field is an error.
func parse(file string, data []byte, strict bool) ([]document, error) {
	var docs []document
	reader := kyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for number := 1; ; number++ {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		var objects []unstructured.Unstructured
		if err == nil {
			objects, err = decode(text, strict)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", file, number, err)
		}
		for _, object := range objects {
			docs = append(docs, document{File: file, Number: number, Object: object})
		}
	}
}

// parse parses a file of the project. Rendered manifests may have a field twice, because Helm
// and kubectl accept this.
func (p *Project) parse(file string, data []byte) ([]document, error) {
	return parse(file, data, !p.options.installs())
}

// decode reads one document.
func decode(text []byte, strict bool) ([]unstructured.Unstructured, error) {
	convert := yaml.YAMLToJSON
	if strict {
		convert = yaml.YAMLToJSONStrict
	}
	asJSON, err := convert(text)
	if err != nil {
		if bytes.Contains(text, []byte("{{")) {
			return nil, fmt.Errorf("it is a template, because it contains {{, and no manifest (%w); %s", err, renderFirst)
		}
		return nil, fmt.Errorf("%w; correct the YAML", err)
	}
	var content any
	if err := json.Unmarshal(asJSON, &content); err != nil {
		return nil, err
	}
	switch content := content.(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return objects(content)
	}
	return nil, errors.New("not a Kubernetes object, because it is not a mapping with apiVersion and kind; name only files with manifests")
}

func objects(content map[string]any) ([]unstructured.Unstructured, error) {
	object := unstructured.Unstructured{Object: content}
	if object.GetAPIVersion() == "" || object.GetKind() == "" {
		return nil, errors.New("not a Kubernetes object: apiVersion or kind is missing; add it, or name only files with manifests")
	}
	items, isList := content["items"].([]any)
	if isList && strings.HasSuffix(object.GetKind(), "List") {
		var all []unstructured.Unstructured
		for i, item := range items {
			content, ok := item.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("items[%d] is not an object; correct the list", i)
			}
			more, err := objects(content)
			if err != nil {
				return nil, fmt.Errorf("items[%d]: %w", i, err)
			}
			all = append(all, more...)
		}
		return all, nil
	}
	if metadata, ok := content["metadata"]; ok {
		if _, ok := metadata.(map[string]any); !ok {
			return nil, fmt.Errorf("%s: metadata is not a mapping; correct it", object.GetKind())
		}
	}
	if object.GetName() == "" && object.GetGenerateName() == "" {
		return nil, fmt.Errorf("%s: metadata.name is missing; add it", object.GetKind())
	}
	return []unstructured.Unstructured{object}, nil
}

// read reads the objects at a path from the options. The path may name a file, a
// kustomization, a folder, or standard input.
func (p *Project) read(path string) ([]document, error) {
	if path == stdin {
		return p.readStdin()
	}
	at := p.path(path)
	info, err := os.Stat(at)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w; name an existing file or folder, relative to the project's folder", err)
	case !info.IsDir():
		return p.readFile(at)
	case isKustomization(at):
		return p.build(at)
	}
	return p.readFolder(at)
}

func (p *Project) readFile(path string) ([]document, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return p.parse(p.rel(path), data)
}

// readFolder reads all YAML and JSON files in a folder and its subfolders, except
// kustomizations.
func (p *Project) readFolder(dir string) ([]document, error) {
	files, err := manifests(dir)
	if err != nil {
		return nil, err
	}
	var docs []document
	for _, file := range files {
		more, err := p.readFile(file)
		if err != nil {
			return nil, err
		}
		docs = append(docs, more...)
	}
	return docs, nil
}

// readFiles reads the YAML and JSON files in a folder, but not those in its subfolders.
func (p *Project) readFiles(dir string) ([]document, error) {
	files, err := manifests(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var docs []document
	for _, file := range files {
		if filepath.Dir(file) != dir {
			continue
		}
		more, err := p.readFile(file)
		if err != nil {
			return nil, err
		}
		docs = append(docs, more...)
	}
	return docs, err
}

func manifests(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if path != dir && strings.HasPrefix(entry.Name(), ".") {
				return fs.SkipDir
			}
		case slices.Contains(kustomizationNames, entry.Name()):
		case slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}
