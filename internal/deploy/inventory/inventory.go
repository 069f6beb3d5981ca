// Package inventory keeps the list of the objects of a deployment in the cluster, as an ApplySet of
// kubectl (KEP 3659), so that other tools understand it.
//
//	Secret, the parent ──lists──▶ kinds and namespaces
//	   └─ its ID ◀──label part-of── each object
//
// The parent names all kinds and namespaces in which there may be objects, at each moment. So a
// call that was interrupted leaves nothing that a later call cannot find.
package inventory

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/ship/install"
)

// The labels and annotations of the specification in KEP 3659. They are repeated here because
// kubectl's package for them needs all of kubectl; a test of internal/cli compares them.
const (
	PartOf     = "applyset.kubernetes.io/part-of"
	ParentID   = "applyset.kubernetes.io/id"
	Tooling    = "applyset.kubernetes.io/tooling"
	GroupKinds = "applyset.kubernetes.io/contains-group-kinds"
	Namespaces = "applyset.kubernetes.io/additional-namespaces"
	idFormat   = "applyset-%s-v1"
)

const (
	tool    = "koboshi"
	tooling = tool + "/v1"
	// prefix begins the name of the parent, so that it is not taken for a Secret of the operator.
	prefix = "koboshi-deploy-"
	// lastCall is the annotation with an identifier of the call that has written the parent last.
	lastCall = "deploy.koboshi.dev/call"
	// manifestKey is the key of the Secret for the manifest of the last successful deployment.
	manifestKey = "manifest.yaml.gz"
	// maxManifest leaves room below corev1.MaxSecretSize, which is 1 MiB.
	maxManifest = 1000 * 1024
)

// Inventory is the list of the objects of a deployment.
type Inventory struct {
	cluster    *cluster.Cluster
	parent     *unstructured.Unstructured // of the API server; nil if it does not exist
	secret     cluster.ID
	kinds      sets.Set[schema.GroupKind]
	namespaces sets.Set[string]
	call       string // identifies the call that has written the parent last
	// Manifest is the compressed manifest of the last successful deployment; empty if there is none.
	Manifest []byte
}

// Read reads the inventory of the deployment with a name, whose parent is in a namespace. It refuses
// a parent that belongs to another tool. If there is no parent, the inventory is empty.
func Read(ctx context.Context, c *cluster.Cluster, namespace, name string) (*Inventory, error) {
	i := &Inventory{
		cluster: c, secret: cluster.ID{Kind: schema.GroupKind{Kind: "Secret"}, Namespace: namespace, Name: prefix + name},
		kinds: sets.New[schema.GroupKind](), namespaces: sets.New[string](),
	}
	parent, err := c.Get(ctx, i.reference())
	if err != nil || parent == nil {
		return i, err
	}
	return i, i.parse(parent)
}

// Find returns the namespace of the inventory with a name.
func Find(ctx context.Context, c *cluster.Cluster, name string) (namespace string, err error) {
	list, err := c.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).List(ctx, metav1.ListOptions{
		LabelSelector: ParentID, FieldSelector: "metadata.name=" + prefix + name,
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("looking for the deployment %s: %w", name, err)
	case len(list.Items) == 0:
		return "", fmt.Errorf("there is no deployment %s; list all with kubectl get secrets -A -l %s", name, ParentID)
	case len(list.Items) > 1:
		return "", fmt.Errorf("there are deployments %s in several namespaces; name the manifest of one of them with -f", name)
	}
	return list.Items[0].GetNamespace(), nil
}

func (i *Inventory) parse(parent *unstructured.Unstructured) error {
	annotations := parent.GetAnnotations()
	owner, _, _ := strings.Cut(annotations[Tooling], "/")
	switch {
	case owner == "" || parent.GetLabels()[ParentID] != i.ID():
		return fmt.Errorf("%s exists and is not an inventory of koboshi deploy; delete it, or choose another name with --name", i.secret)
	case owner != tool:
		return fmt.Errorf("%s is the inventory of another tool, %s; choose another name with --name", i.secret, owner)
	}
	for _, kind := range split(annotations[GroupKinds]) {
		i.kinds.Insert(schema.ParseGroupKind(kind))
	}
	i.namespaces.Insert(i.secret.Namespace)
	i.namespaces.Insert(split(annotations[Namespaces])...)
	text, _, _ := unstructured.NestedString(parent.Object, "data", manifestKey)
	manifest, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return fmt.Errorf("reading the manifest in %s: %w", i.secret, err)
	}
	i.parent, i.Manifest, i.call = parent, manifest, annotations[lastCall]
	return nil
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// ID returns the identifier with which each object refers to the parent.
func (i *Inventory) ID() string { return ID(i.secret.Namespace, i.secret.Name) }

// ID returns the identifier of a Secret as a parent: version 1 of the specification.
func ID(namespace, name string) string {
	hash := sha256.Sum256([]byte(strings.Join([]string{name, namespace, "Secret", ""}, ".")))
	return fmt.Sprintf(idFormat, base64.RawURLEncoding.EncodeToString(hash[:]))
}

// Exists reports whether the parent existed when it was read or written last.
func (i *Inventory) Exists() bool { return i.parent != nil }

// Parent identifies the Secret.
func (i *Inventory) Parent() cluster.ID { return i.secret }

// Label makes objects refer to the parent.
func (i *Inventory) Label(objects []unstructured.Unstructured) {
	for n := range objects {
		labels := maps.Clone(objects[n].GetLabels())
		if labels == nil {
			labels = map[string]string{}
		}
		labels[PartOf] = i.ID()
		objects[n].SetLabels(labels)
	}
}

// CheckOwner refuses an object of the cluster that belongs to another ApplySet.
func (i *Inventory) CheckOwner(live *unstructured.Unstructured) error {
	if of := live.GetLabels()[PartOf]; of != "" && of != i.ID() {
		return fmt.Errorf("%s belongs to another deployment, whose inventory has the label %s=%s; remove it there first, or use the --name of that deployment",
			cluster.IDOf(live), ParentID, of)
	}
	return nil
}

// Begin adds the kinds and namespaces of objects that will be applied. It always changes the parent, so
// that another call that has read the parent before cannot write it any more.
func (i *Inventory) Begin(ctx context.Context, objects []unstructured.Unstructured) error {
	i.add(objects)
	i.call = uuid.NewString()
	return i.write(ctx)
}

// Finish records that a deployment was successful, and has these objects and no others. The manifest
// is kept for a rollback; an empty one is none.
func (i *Inventory) Finish(ctx context.Context, objects []unstructured.Unstructured, manifest []byte) error {
	i.kinds, i.namespaces = sets.New[schema.GroupKind](), sets.New[string]()
	i.add(objects)
	i.Manifest = manifest
	return i.write(ctx)
}

func (i *Inventory) add(objects []unstructured.Unstructured) {
	for n := range objects {
		i.kinds.Insert(objects[n].GroupVersionKind().GroupKind())
		if namespace := objects[n].GetNamespace(); namespace != "" {
			i.namespaces.Insert(namespace)
		}
	}
}

// write applies the parent. Another call that has written it since it was read is a conflict, so
// that two calls at the same time do not lose objects of each other.
func (i *Inventory) write(ctx context.Context) error {
	var kinds []string
	for kind := range i.kinds {
		kinds = append(kinds, kind.String())
	}
	slices.Sort(kinds)
	others := slices.DeleteFunc(sets.List(i.namespaces), func(n string) bool { return n == i.secret.Namespace })
	u := i.reference()
	u.SetLabels(map[string]string{ParentID: i.ID()})
	u.SetAnnotations(map[string]string{
		Tooling:    tooling,
		GroupKinds: strings.Join(kinds, ","),
		Namespaces: strings.Join(others, ","),
		lastCall:   i.call,
	})
	if len(i.Manifest) > 0 {
		u.Object["data"] = map[string]any{manifestKey: base64.StdEncoding.EncodeToString(i.Manifest)}
	}
	var parent *unstructured.Unstructured
	var err error
	if i.parent == nil {
		parent, err = i.cluster.Create(ctx, u)
	} else {
		u.SetResourceVersion(i.parent.GetResourceVersion())
		parent, err = i.cluster.Apply(ctx, u, cluster.Apply{Force: true})
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("another deployment has changed %s at the same time; deploy again: %w", i.secret, err)
	}
	if err != nil {
		return fmt.Errorf("writing the inventory: %w", err)
	}
	i.parent = parent
	return nil
}

func (i *Inventory) reference() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}
	u.SetNamespace(i.secret.Namespace)
	u.SetName(i.secret.Name)
	return u
}

// Members returns the objects in the cluster that refer to the parent. It ignores objects that a
// controller has made and to which it has copied the label: nobody has applied them.
func (i *Inventory) Members(ctx context.Context) ([]unstructured.Unstructured, error) {
	kinds := i.kinds.Clone()
	// A call that was interrupted between the namespaces and the parent has left only namespaces.
	kinds.Insert(schema.GroupKind{Kind: "Namespace"})
	var members []unstructured.Unstructured
	for kind := range kinds {
		mapping, err := i.cluster.Mapper.RESTMapping(kind)
		if meta.IsNoMatchError(err) {
			continue // with its CRD, all its objects were deleted
		}
		if err != nil {
			return nil, fmt.Errorf("looking for the objects of the deployment: %w", err)
		}
		namespaces := []string{metav1.NamespaceAll}
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			namespaces = sets.List(i.namespaces)
		}
		for _, namespace := range namespaces {
			found, err := i.list(ctx, mapping, namespace)
			if apierrors.IsForbidden(err) && !i.kinds.Has(kind) {
				continue // a user of a namespace has deployed no Namespace
			}
			if err != nil {
				return nil, err
			}
			members = append(members, found...)
		}
	}
	install.Sort(members)
	return members, nil
}

func (i *Inventory) list(ctx context.Context, mapping *meta.RESTMapping, namespace string) ([]unstructured.Unstructured, error) {
	list, err := i.cluster.Dynamic.Resource(mapping.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{
		LabelSelector: PartOf + "=" + i.ID(),
	})
	if apierrors.IsNotFound(err) {
		return nil, nil // its CRD was deleted since the kinds were read
	}
	if err != nil {
		return nil, fmt.Errorf("looking for the objects of the deployment: listing %s: %w", mapping.Resource.GroupResource(), err)
	}
	return slices.DeleteFunc(list.Items, func(u unstructured.Unstructured) bool { return !applied(&u) }), nil
}

// applied reports whether koboshi deploy has applied an object.
func applied(u *unstructured.Unstructured) bool {
	return metav1.GetControllerOf(u) == nil && slices.ContainsFunc(u.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == cluster.FieldManager && f.Operation == metav1.ManagedFieldsOperationApply
	})
}

// Delete deletes the parent.
func (i *Inventory) Delete(ctx context.Context) error {
	return i.cluster.Delete(ctx, i.reference(), metav1.DeletePropagationBackground)
}

// Compress returns the objects as a compressed manifest. If it does not fit into a Secret, the
// result is nil.
func Compress(objects []unstructured.Unstructured) ([]byte, error) {
	text, err := install.YAML("", objects)
	if err != nil {
		return nil, err
	}
	var into bytes.Buffer
	w := gzip.NewWriter(&into)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if into.Len() > maxManifest {
		return nil, nil
	}
	return into.Bytes(), nil
}

// Decompress returns the text of a compressed manifest.
func Decompress(manifest []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(manifest))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest of the previous deployment: %w", err)
	}
	return io.ReadAll(r)
}
