package olm

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The folders of a bundle.
const (
	Manifests = "manifests"
	Metadata  = "metadata"
)

// files returns the files of the bundle.
func (m *maker) files(csv map[string]any) (map[string][]byte, error) {
	files := map[string][]byte{}
	add := func(name string, content any) error {
		text, err := yaml.Marshal(content)
		if err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if files[name] != nil {
			return fmt.Errorf("two objects of the bundle would be the file %s; rename one of them", name)
		}
		files[name] = text
		return nil
	}
	if err := add(path.Join(Manifests, m.Package+".clusterserviceversion.yaml"), csv); err != nil {
		return nil, err
	}
	for _, o := range m.held {
		if err := add(path.Join(Manifests, fileName(o)), m.portable(o).Object); err != nil {
			return nil, err
		}
	}
	if err := add(path.Join(Metadata, "annotations.yaml"), map[string]any{"annotations": m.labels()}); err != nil {
		return nil, err
	}
	return files, checkSize(files)
}

// maxSize is the size of a ConfigMap, in which OLM stores a bundle with compressed files.
const maxSize = 1 << 20

// checkSize refuses a bundle that OLM cannot store.
func checkSize(files map[string][]byte) error {
	size := 0
	for _, content := range files {
		var compressed bytes.Buffer
		writer := gzip.NewWriter(&compressed)
		if _, err := writer.Write(content); err != nil {
			return err
		}
		if err := writer.Close(); err != nil {
			return err
		}
		size += base64.StdEncoding.EncodedLen(compressed.Len())
	}
	if size > maxSize {
		return fmt.Errorf("the bundle would have %d kB after compression, and OLM stores at most %d kB; make its CRDs smaller, such as with crd:maxDescLen=0", size>>10, maxSize>>10)
	}
	return nil
}

// portable returns an object without its namespace, because OLM creates it in the namespace in which a
// person installs the operator.
func (m *maker) portable(o unstructured.Unstructured) *unstructured.Unstructured {
	o = *o.DeepCopy()
	unstructured.RemoveNestedField(o.Object, "metadata", "namespace")
	unstructured.RemoveNestedField(o.Object, "metadata", "creationTimestamp")
	return &o
}

// noFile has everything that file names of some systems cannot have.
var noFile = regexp.MustCompile(`[^a-z0-9._-]+`)

// fileName returns the name that operator-sdk gives to the file of an object.
func fileName(o unstructured.Unstructured) string {
	kind := o.GroupVersionKind()
	name := strings.Join([]string{o.GetName(), strings.ReplaceAll(strings.TrimPrefix(kind.GroupVersion().String(), "/"), "/", "_"), kind.Kind}, "_")
	if groupKind(o) == crdKind {
		name = textAt(o.Object, "spec", "group") + "_" + textAt(o.Object, "spec", "names", "plural")
	}
	return noFile.ReplaceAllString(strings.ToLower(name), "-") + ".yaml"
}

// labels returns the labels of the bundle's image, which are also annotations in its metadata.
func (m *maker) labels() map[string]string {
	const prefix = "operators.operatorframework.io.bundle."
	return map[string]string{
		prefix + "mediatype.v1":       "registry+v1",
		prefix + "manifests.v1":       Manifests + "/",
		prefix + "metadata.v1":        Metadata + "/",
		prefix + "package.v1":         m.Package,
		prefix + "channels.v1":        strings.Join(m.Channels, ","),
		prefix + "channel.default.v1": m.Channels[0],
	}
}
