// Package content collects the files of a site from the spec of a MarkdownView and from the
// ConfigMaps to which the spec refers. The package packs the files into other ConfigMaps.
//
// Package content is pure: the same files have the same hash and the same packing, whatever their
// origin.
package content

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
)

const (
	// DefaultLimit is the maximum size of all files of a site together, in bytes.
	DefaultLimit = 8 << 20
	// maxPath is the maximum length of a path, in bytes. The schema enforces this limit
	// only for paths in the spec, but a path can also consist of a source's path and a key.
	maxPath = 240
)

// Error explains why a site cannot be made.
type Error struct {
	// Reason is the reason for a condition.
	Reason string
	// Message explains to the author what is wrong and how to repair it.
	Message string
}

func (e *Error) Error() string { return e.Message }

func wrong(reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Names returns the names of the ConfigMaps to which the spec refers, without duplicates.
func Names(spec *viewv1.MarkdownViewSpec) []string {
	var names []string
	for i := range spec.ContentFrom {
		names = append(names, spec.ContentFrom[i].ConfigMap.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Collect returns the files of a site, sorted by path. configMaps holds the ConfigMaps that
// exist, keyed by name. If several files have the same path, the file in the spec takes
// precedence; among sources, the last one takes precedence. limit is the maximum size of
// all files together; 0 means DefaultLimit. The data is not copied.
//
// Every error is an *Error.
func Collect(spec *viewv1.MarkdownViewSpec, configMaps map[string]*corev1.ConfigMap, limit int) ([]book.File, error) {
	files := map[string][]byte{}
	for i := range spec.ContentFrom {
		if err := addSource(files, &spec.ContentFrom[i], configMaps[spec.ContentFrom[i].ConfigMap.Name]); err != nil {
			return nil, err
		}
	}
	for path, text := range spec.Markdowns {
		if _, both := spec.BinaryAssets[path]; both {
			return nil, wrong(viewv1.ReasonContentInvalid, "%q is both in markdowns and in binaryAssets: remove one of them", path)
		}
		files[path] = []byte(text)
	}
	for path, data := range spec.BinaryAssets {
		files[path] = data
	}
	return sorted(files, limit)
}

// addSource adds the files of one source. cm is nil if the ConfigMap does not exist.
func addSource(files map[string][]byte, source *viewv1.ContentSource, cm *corev1.ConfigMap) error {
	want := source.ConfigMap
	if cm == nil {
		if want.Optional {
			return nil
		}
		return wrong(viewv1.ReasonContentMissing,
			"the ConfigMap %q does not exist: create it, or set optional", want.Name)
	}
	items := want.Items
	if len(items) == 0 {
		items = everyKey(cm)
	}
	for _, item := range items {
		data, ok := value(cm, item.Key)
		if !ok && want.Optional {
			continue
		}
		if !ok {
			return wrong(viewv1.ReasonContentMissing,
				"the ConfigMap %q has no key %q: add it, or set optional", want.Name, item.Key)
		}
		path := item.Path
		if path == "" {
			path = item.Key
		}
		if source.Path != "" {
			path = source.Path + "/" + path
		}
		files[path] = data
	}
	return nil
}

func everyKey(cm *corev1.ConfigMap) []viewv1.ContentItem {
	items := make([]viewv1.ContentItem, 0, len(cm.Data)+len(cm.BinaryData))
	for key := range cm.Data {
		items = append(items, viewv1.ContentItem{Key: key})
	}
	for key := range cm.BinaryData {
		items = append(items, viewv1.ContentItem{Key: key})
	}
	return items
}

func value(cm *corev1.ConfigMap, key string) ([]byte, bool) {
	if text, ok := cm.Data[key]; ok {
		return []byte(text), true
	}
	data, ok := cm.BinaryData[key]
	return data, ok
}

// sorted checks the files together, and sorts them by path.
func sorted(files map[string][]byte, limit int) ([]book.File, error) {
	if len(files) == 0 {
		return nil, wrong(viewv1.ReasonContentMissing, "the site has no files: add a page to markdowns, or to a ConfigMap of contentFrom")
	}
	if limit == 0 {
		limit = DefaultLimit
	}
	total := 0
	list := make([]book.File, 0, len(files))
	for path, data := range files {
		if len(path) > maxPath {
			return nil, wrong(viewv1.ReasonContentInvalid, "the path %q has %d bytes, more than %d: shorten it, for example by setting a path in items", path, len(path), maxPath)
		}
		if len(data) > maxFile {
			return nil, wrong(viewv1.ReasonContentTooLarge, "the file %q has %d bytes, more than a ConfigMap can hold (%d): make it smaller", path, len(data), maxFile)
		}
		if dir := under(files, path); dir != "" {
			return nil, wrong(viewv1.ReasonContentInvalid, "%q is a file, but %q needs a directory with this name: rename one of them", dir, path)
		}
		total += len(data)
		list = append(list, book.File{Path: path, Data: data})
	}
	if total > limit {
		return nil, wrong(viewv1.ReasonContentTooLarge,
			"the files together have %d bytes, more than %d: make them smaller, or split the site", total, limit)
	}
	slices.SortFunc(list, func(a, b book.File) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// under returns a file whose path is a parent directory of this path, or "" if there is
// none.
func under(files map[string][]byte, path string) string {
	for i, c := range path {
		if c != '/' {
			continue
		}
		if _, ok := files[path[:i]]; ok {
			return path[:i]
		}
	}
	return ""
}
