package project

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// errElsewhere means that the content of a volume comes from outside the cluster.
var errElsewhere = errors.New("its content comes from outside the cluster")

// rootCA is the name of the ConfigMap that a cluster puts into every namespace. It has the
// certificate of the API server's authority.
const rootCA = "kube-root-ca.crt"

// volumes sets the files of the manager's volumes.
func (r *resolver) volumes() error {
	for _, mount := range r.m.container.VolumeMounts {
		if r.isCertificate(mount) {
			r.m.certs = append(r.m.certs, mount.MountPath)
			continue
		}
		known := len(r.m.certs)
		files, err := r.content(mount)
		if len(files) == 0 && len(r.m.certs) > known {
			continue // a projected volume that has only certificates
		}
		if errors.Is(err, errElsewhere) {
			r.p.note("the volume %s of %s is not available in a check: %v", mount.Name, r.m.workload, err)
			continue
		}
		if err != nil {
			return r.m.workload.errorf("the volume %s, mounted at %s: %w", mount.Name, mount.MountPath, err)
		}
		files = subPath(files, mount.SubPath)
		for _, name := range quietFiles(files) {
			r.p.note("leader election, metrics, probes and generated certificates are turned off in %s", path.Join(mount.MountPath, name))
		}
		r.m.files = append(r.m.files, subject.Mount{Path: mount.MountPath, Files: files})
	}
	return nil
}

// subPath returns the files below a path, or the file at this path under the name "".
func subPath(files map[string][]byte, below string) map[string][]byte {
	if below == "" {
		return files
	}
	inside := map[string][]byte{}
	for name, content := range files {
		if name == below {
			inside[""] = content
		} else if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(below, "/")+"/"); ok {
			inside[rest] = content
		}
	}
	return inside
}

func (r *resolver) volume(name string) *corev1.Volume {
	for i, volume := range r.m.template.Spec.Volumes {
		if volume.Name == name {
			return &r.m.template.Spec.Volumes[i]
		}
	}
	return nil
}

// content returns the files of a volume. A volume that is empty at first has no files; a claim of a
// StatefulSet, which is not among the volumes of the Pod, is such a volume.
func (r *resolver) content(mount corev1.VolumeMount) (map[string][]byte, error) {
	volume := r.volume(mount.Name)
	switch {
	case volume == nil && !r.m.workload.is("apps", "StatefulSet"):
		return nil, errElsewhere
	case volume == nil, volume.EmptyDir != nil, volume.PersistentVolumeClaim != nil, volume.Ephemeral != nil:
		return nil, nil
	case volume.ConfigMap != nil:
		return r.keys("ConfigMap", volume.ConfigMap.Name, volume.ConfigMap.Items, volume.ConfigMap.Optional)
	case volume.Secret != nil:
		return r.keys("Secret", volume.Secret.SecretName, volume.Secret.Items, volume.Secret.Optional)
	case volume.DownwardAPI != nil:
		return r.downward(volume.DownwardAPI.Items)
	case volume.Projected != nil:
		return r.projected(mount, volume.Projected.Sources)
	}
	return nil, errElsewhere
}

// projected returns the files of a projected volume. A source whose content comes from
// outside the cluster is left out with a note.
func (r *resolver) projected(mount corev1.VolumeMount, sources []corev1.VolumeProjection) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, source := range sources {
		var more map[string][]byte
		var err error
		switch {
		case source.Secret != nil && r.issues(source.Secret.Name, mount):
			if !slices.Contains(r.m.certs, mount.MountPath) {
				r.m.certs = append(r.m.certs, mount.MountPath)
			}
		case source.ConfigMap != nil:
			more, err = r.keys("ConfigMap", source.ConfigMap.Name, source.ConfigMap.Items, source.ConfigMap.Optional)
		case source.Secret != nil:
			more, err = r.keys("Secret", source.Secret.Name, source.Secret.Items, source.Secret.Optional)
		case source.DownwardAPI != nil:
			more, err = r.downward(source.DownwardAPI.Items)
		case source.ServiceAccountToken != nil:
			more = map[string][]byte{source.ServiceAccountToken.Path: []byte(subject.AccountToken)}
		default:
			r.p.note("a source of the volume %s of %s is not available in a check: %v", mount.Name, r.m.workload, errElsewhere)
		}
		if err != nil {
			return nil, err
		}
		maps.Copy(files, more)
	}
	return files, nil
}

// downward returns the files of a downward API volume.
func (r *resolver) downward(items []corev1.DownwardAPIVolumeFile) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, item := range items {
		var value string
		var ok bool
		switch {
		case item.FieldRef != nil:
			value, ok = r.field(item.FieldRef.FieldPath)
		case item.ResourceFieldRef != nil:
			value, ok = r.resource(item.ResourceFieldRef)
		}
		if !ok {
			return nil, fmt.Errorf("the file %s has a field that no Pod has; fix its fieldRef", item.Path)
		}
		files[item.Path] = []byte(value)
	}
	return files, nil
}

// keys returns the files that a volume makes from a ConfigMap or Secret.
func (r *resolver) keys(kind, name string, items []corev1.KeyToPath, optional *bool) (map[string][]byte, error) {
	mayLack := optional != nil && *optional
	data, found := r.data(kind, name)
	if !found && kind == "ConfigMap" && name == rootCA {
		data, found = map[string][]byte{"ca.crt": []byte(subject.AccountCA)}, true
	}
	if !found {
		if mayLack {
			return nil, nil
		}
		return nil, fmt.Errorf("the %s %s is not in the installation; %s", kind, name, r.supply(kind, name))
	}
	if len(items) == 0 {
		return data, nil
	}
	files := map[string][]byte{}
	for _, item := range items {
		content, ok := data[item.Key]
		if !ok && !mayLack {
			return nil, fmt.Errorf("the %s %s has no key %s; add it, or %s", kind, name, item.Key, r.supply(kind, name))
		}
		if ok {
			files[item.Path] = content
		}
	}
	return files, nil
}

// isCertificate reports whether a volume has a certificate that a program in a cluster, such as
// cert-manager, would issue. The lab issues this certificate instead.
func (r *resolver) isCertificate(mount corev1.VolumeMount) bool {
	volume := r.volume(mount.Name)
	if volume == nil || volume.Secret == nil {
		return false
	}
	return r.issues(volume.Secret.SecretName, mount)
}

// issues reports whether the lab issues the certificate in a Secret, because a program in a cluster
// would issue it.
func (r *resolver) issues(name string, mount corev1.VolumeMount) bool {
	if slices.Contains(r.parts.issued, name) {
		return true
	}
	// A Secret without data is filled by a program in the cluster, often the controller itself.
	if data, found := r.data("Secret", name); found && len(data) > 0 && !r.parts.has("Certificate", r.id.Namespace, name) {
		return false
	}
	for _, text := range []string{name, mount.Name, mount.MountPath} {
		if strings.Contains(text, "cert") || strings.Contains(text, "tls") {
			return true
		}
	}
	return false
}

// dataOf returns the contents of a ConfigMap or Secret. A value of a Secret that is not base64 is
// left out, because the API server names this value when it refuses the Secret.
func dataOf(d document) map[string][]byte {
	data := map[string][]byte{}
	copyTexts := func(field string, decode func(string) ([]byte, error)) {
		values, _, _ := unstructured.NestedMap(d.Object.Object, field)
		for key, value := range values {
			text, _ := value.(string)
			if content, err := decode(text); err == nil {
				data[key] = content
			}
		}
	}
	plain := func(text string) ([]byte, error) { return []byte(text), nil }
	if d.is("", "Secret") {
		copyTexts("data", base64.StdEncoding.DecodeString)
		copyTexts("stringData", plain)
		return data
	}
	copyTexts("data", plain)
	copyTexts("binaryData", base64.StdEncoding.DecodeString)
	return data
}

func sorted[V any](values map[string]V) []string { return slices.Sorted(maps.Keys(values)) }

// knows reports whether a path is a file whose content is known.
func (m *manager) knows(file string) bool {
	file = m.absolute(file)
	return slices.ContainsFunc(m.files, func(mount subject.Mount) bool {
		_, known := mount.Files[strings.TrimPrefix(strings.TrimPrefix(file, path.Clean(mount.Path)), "/")]
		return known && within(file, path.Clean(mount.Path))
	})
}

// provides reports whether a path is in a volume whose files are known.
func (m *manager) provides(file string) bool {
	file = m.absolute(file)
	return slices.ContainsFunc(m.files, func(mount subject.Mount) bool {
		if !within(file, mount.Path) {
			return false
		}
		_, known := mount.Files[strings.TrimPrefix(strings.TrimPrefix(file, mount.Path), "/")]
		return known || len(mount.Files) == 0 || file == path.Clean(mount.Path)
	})
}
