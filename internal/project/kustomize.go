package project

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

var kustomizationNames = konfig.RecognizedKustomizationFileNames()

// isKustomization reports whether the folder has a kustomization file.
func isKustomization(dir string) bool { return kustomizationFile(dir) != "" }

func kustomizationFile(dir string) string {
	for _, name := range kustomizationNames {
		if path := filepath.Join(dir, name); exists(path) {
			return path
		}
	}
	return ""
}

// kustomize builds a folder in this process, without plugins or network access.
func (p *Project) kustomize(dir string) (docs []document, err error) {
	defer func() {
		// Kustomize panics on some broken files.
		if broken := recover(); broken != nil {
			err = fmt.Errorf("kustomize build %s: %v", p.rel(dir), broken)
		}
	}()
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	if err := p.refuseRemote(root, nil); err != nil {
		return nil, fmt.Errorf("kustomize build %s: %w", p.rel(dir), err)
	}
	options := krusty.MakeDefaultOptions()
	// Many Makefiles set this, and it is safe because the project belongs to the user.
	options.LoadRestrictions = types.LoadRestrictionsNone
	built, err := krusty.MakeKustomizer(options).Run(adapted{filesys.MakeFsOnDisk(), root, p.supplied}, root)
	if err != nil {
		if fault := p.fault(root, nil); fault != nil {
			err = fault
		}
		return nil, fmt.Errorf("kustomize build %s: %w", p.rel(dir), err)
	}
	for _, r := range built.Resources() {
		doc, err := p.fromResource(root, r)
		if err != nil {
			if fault := p.fault(root, nil); fault != nil {
				err = fault
			}
			return nil, fmt.Errorf("kustomize build %s: %w", p.rel(dir), err)
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// fault returns the error of the first file that a kustomization includes and that cannot be
// parsed. Kustomize's own error does not name the document.
func (p *Project) fault(dir string, seen []string) error {
	if slices.Contains(seen, dir) {
		return nil
	}
	data, err := os.ReadFile(kustomizationFile(dir))
	if err != nil {
		return nil
	}
	var content map[string]any
	if yaml.Unmarshal(data, &content) != nil {
		return nil
	}
	for _, entry := range slices.Concat(texts(content["resources"]), texts(content["bases"])) {
		at := filepath.Join(dir, entry)
		if isKustomization(at) {
			err = p.fault(at, append(slices.Clip(seen), dir))
		} else if info, statErr := os.Stat(at); statErr == nil && !info.IsDir() {
			_, err = p.readFile(at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *Project) fromResource(root string, r *resource.Resource) (document, error) {
	doc := document{File: p.rel(root)}
	if origin, err := r.GetOrigin(); err == nil && origin != nil && origin.Path != "" {
		doc.File = p.rel(filepath.Join(root, origin.Path))
	}
	if err := r.SetOrigin(nil); err != nil {
		return doc, err
	}
	data, err := r.MarshalJSON()
	if err != nil {
		return doc, fmt.Errorf("%s: %s %s: %w", doc.File, r.GetKind(), r.GetName(), err)
	}
	content := map[string]any{}
	if err := json.Unmarshal(data, &content); err != nil {
		return doc, fmt.Errorf("%s: %s %s: %w", doc.File, r.GetKind(), r.GetName(), err)
	}
	doc.Object = unstructured.Unstructured{Object: content}
	return doc, nil
}

// adapted presents kustomizations to kustomize in its current syntax. It also makes
// kustomize annotate each object with its file, as if the root kustomization requested it.
type adapted struct {
	filesys.FileSystem
	root     string
	supplied func(url string) bool
}

func (a adapted) ReadFile(path string) ([]byte, error) {
	data, err := a.FileSystem.ReadFile(path)
	if err != nil || !slices.Contains(kustomizationNames, filepath.Base(path)) {
		return data, err
	}
	content := map[string]any{}
	if yaml.Unmarshal(data, &content) != nil {
		return data, nil // kustomize has a better error message
	}
	old := movePatches(content)
	old = dropResources(content, a.supplied) || old
	if filepath.Dir(path) == a.root {
		metadata, _ := content["buildMetadata"].([]any)
		content["buildMetadata"] = append(metadata, types.OriginAnnotations)
	} else if !old {
		return data, nil
	}
	return yaml.Marshal(content)
}

// movePatches moves the file names in patches to patchesStrategicMerge, and reports whether
// there were any. Before version 2.1 (2019), the field patches was a list of such names.
// Kustomize still accepts all other old fields.
func movePatches(content map[string]any) bool {
	patches, _ := content["patches"].([]any)
	files := texts(patches)
	if len(files) == 0 {
		return false
	}
	merged, _ := content["patchesStrategicMerge"].([]any)
	for _, file := range files {
		merged = append(merged, file)
	}
	content["patchesStrategicMerge"] = merged
	content["patches"] = slices.DeleteFunc(slices.Clone(patches), func(patch any) bool {
		_, isText := patch.(string)
		return isText
	})
	return true
}

// supplied reports whether the options name a local file with the file name of a URL. The
// local file is then added to the installation in place of the remote one.
func (p *Project) supplied(url string) bool {
	return isURL(url) && slices.ContainsFunc(slices.Concat(p.options.WithCRDs, p.options.Given), func(file string) bool {
		return filepath.Base(file) == path.Base(url)
	})
}

// dropResources removes resources from a kustomization, and reports whether there were any.
func dropResources(content map[string]any, drop func(string) bool) bool {
	resources, _ := content["resources"].([]any)
	kept := slices.DeleteFunc(slices.Clone(resources), func(entry any) bool {
		text, ok := entry.(string)
		return ok && drop(text)
	})
	if len(kept) == len(resources) {
		return false
	}
	content["resources"] = kept
	return true
}

// remoteFiles returns the URLs of manifests among the resources of a kustomization. Such a
// file usually belongs to another project.
func remoteFiles(content map[string]any) []string {
	return slices.DeleteFunc(texts(content["resources"]), func(entry string) bool {
		return !isURL(entry) || !isYAML(entry)
	})
}

// errRemote includes the user's next action.
var errRemote = errors.New("is not on this machine, and koboshi downloads nothing; " +
	"download it, or name another kustomization with " + flagKustomization)

// remoteError is the form of errRemote for manifests that the user can download one by one.
type remoteError struct{ urls []string }

func (e remoteError) Error() string {
	return fmt.Sprintf("%s: koboshi downloads nothing; download the files and keep their names, then add a file with CRDs with %s, and any other file with %s",
		strings.Join(e.urls, ", "), flagWithCRDs, flagGiven)
}

func (remoteError) Is(target error) bool { return target == errRemote }

// refuseRemote returns an error if kustomize would download something for a kustomization,
// or for another kustomization that it includes.
func (p *Project) refuseRemote(dir string, seen []string) error {
	file := kustomizationFile(dir)
	if file == "" || slices.Contains(seen, dir) {
		return nil // kustomize has a better error message
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var content map[string]any
	if err := yaml.Unmarshal(data, &content); err != nil {
		return fmt.Errorf("%s: %w", p.rel(file), err)
	}
	for _, field := range []string{"helmCharts", "helmChartInflationGenerator"} {
		if content[field] != nil {
			return fmt.Errorf("%s: %s: Helm charts are not rendered; render the chart to a file, or name another kustomization with %s",
				p.rel(file), field, flagKustomization)
		}
	}
	dropResources(content, p.supplied)
	if urls := remoteFiles(content); len(urls) > 0 {
		return fmt.Errorf("%s: %w", p.rel(file), remoteError{urls})
	}
	if url := firstURL(content); url != "" {
		return fmt.Errorf("%s: %s %w", p.rel(file), url, errRemote)
	}
	for _, field := range []string{"resources", "bases", "components"} {
		for _, entry := range texts(content[field]) {
			at := filepath.Join(dir, entry)
			if !exists(at) {
				return fmt.Errorf("%s: %s: %s %w", p.rel(file), field, entry, errRemote)
			}
			if err := p.refuseRemote(at, append(slices.Clip(seen), dir)); err != nil {
				return err
			}
		}
	}
	return nil
}

// inline lists the fields of a kustomization whose strings are not paths.
var inline = []string{
	"literals", "patch", "commonAnnotations", "commonLabels", "labels", "images", "options", "pairs", "annotations",
}

// firstURL returns the first string that kustomize would treat as a URL.
func firstURL(part any) string {
	switch part := part.(type) {
	case string:
		if isURL(part) {
			return part
		}
	case []any:
		for _, item := range part {
			if url := firstURL(item); url != "" {
				return url
			}
		}
	case map[string]any:
		for field, item := range part {
			if slices.Contains(inline, field) {
				continue
			}
			if url := firstURL(item); url != "" {
				return url
			}
		}
	}
	return ""
}

func isURL(text string) bool {
	return strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")
}

// texts returns the strings in a list.
func texts(list any) []string {
	items, _ := list.([]any)
	var all []string
	for _, item := range items {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all
}
