package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"

	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/check/upgrade"
	"github.com/koboshi-dev/koboshi/internal/served"
)

type object = unstructured.Unstructured

const (
	// servedWithin limits how long the API server may take to serve a changed CRD.
	servedWithin = 30 * time.Second
	// conversionWithin is the time after which a version that cannot be converted counts as served.
	conversionWithin = 2 * time.Second
)

// replace replaces the objects of one installation by those of another, as kubectl apply does, and waits
// until the API server uses the CRDs. It returns the objects that the API server does not accept. Such
// an object is created again, unless it is a CRD.
func (l *Lab) replace(ctx context.Context, was, is []object) (refused []upgrade.Refusal, err error) {
	l.moves++
	var crds []*object
	for i := range is {
		wanted := is[i].DeepCopy()
		unstructured.RemoveNestedField(wanted.Object, "status")
		if served.IsCRD(wanted) {
			mark(wanted, l.column())
		}
		err := l.apply(ctx, sameIn(was, wanted), wanted)
		switch {
		case err == nil:
			if served.IsCRD(wanted) {
				crds = append(crds, wanted)
			}
			continue
		case !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err):
			return refused, fmt.Errorf("installing %s %s: %w", wanted.GetKind(), wanted.GetName(), err)
		}
		refused = append(refused, refusalOf(wanted, err))
		if served.IsCRD(wanted) {
			continue
		}
		if err := l.recreate(ctx, wanted); err != nil {
			return refused, err
		}
	}
	return refused, l.usesCRDs(ctx, crds)
}

// apply creates an object, or replaces the manifest was by is.
func (l *Lab) apply(ctx context.Context, was, is *object) error {
	resource, err := l.resource(is)
	if err != nil {
		return err
	}
	now, err := resource.Get(ctx, is.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return l.post(ctx, is)
	}
	if err != nil {
		return err
	}
	patch, err := threeWay(was, is, now)
	if err != nil || string(patch) == "{}" {
		return err
	}
	_, err = resource.Patch(ctx, is.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "koboshi-check"})
	return err
}

func threeWay(was, is, now *object) ([]byte, error) {
	var texts [3][]byte
	for i, o := range []*object{was, is, now} {
		if o == nil {
			continue // nothing to remove
		}
		content := o.DeepCopy()
		unstructured.RemoveNestedField(content.Object, "status")
		unstructured.RemoveNestedField(content.Object, "metadata", "creationTimestamp")
		var err error
		if texts[i], err = json.Marshal(content.Object); err != nil {
			return nil, err
		}
	}
	return jsonmergepatch.CreateThreeWayJSONMergePatch(texts[0], texts[1], texts[2])
}

func (l *Lab) recreate(ctx context.Context, o *object) error {
	resource, err := l.resource(o)
	if err == nil {
		err = resource.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
	}
	if err != nil {
		return fmt.Errorf("replacing %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return l.post(ctx, o)
}

// withdrawn lists the kinds whose objects are deleted if the new installation lacks them, as an upgrade
// with Helm does. A CRD that is deleted would take all stored objects with it.
var withdrawn = []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}

// withdraw deletes permissions and webhooks that only the other version has.
func (l *Lab) withdraw(ctx context.Context, was, is *subject.Subject) error {
	for _, old := range slices.Concat(was.Install, was.Webhooks) {
		if !slices.Contains(withdrawn, old.GetKind()) || sameIn(slices.Concat(is.Install, is.Webhooks), &old) != nil {
			continue
		}
		resource, err := l.resource(&old)
		if err == nil {
			err = resource.Delete(ctx, old.GetName(), metav1.DeleteOptions{})
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting %s %s of the other version: %w", old.GetKind(), old.GetName(), err)
		}
	}
	return nil
}

func sameIn(all []object, o *object) *object {
	for i := range all {
		if all[i].GroupVersionKind().GroupKind() == o.GroupVersionKind().GroupKind() && all[i].GetNamespace() == o.GetNamespace() && all[i].GetName() == o.GetName() {
			return &all[i]
		}
	}
	return nil
}

func refusalOf(o *object, err error) upgrade.Refusal {
	refusal := upgrade.Refusal{
		Object: o.GroupVersionKind().GroupKind().String() + " " + o.GetName(), CRD: served.IsCRD(o), Why: err.Error(),
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
		for _, cause := range status.Status().Details.Causes {
			refusal.Stored = refusal.Stored || strings.HasPrefix(cause.Field, "status.storedVersions")
		}
	}
	return refusal
}

// column names the printer column that marks the CRDs of the current installation.
func (l *Lab) column() string { return fmt.Sprintf("koboshi-%d", l.moves) }

// mark adds a printer column to all versions of a CRD. The API server prints the column only after it
// has begun to use this CRD; nothing else shows this reliably.
func mark(crd *object, column string) {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		columns, _ := version["additionalPrinterColumns"].([]any)
		version["additionalPrinterColumns"] = append([]any{map[string]any{"name": column, "type": "string", "jsonPath": ".metadata.name"}}, columns...)
	}
	_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
}

// usesCRDs waits until the API server uses marked CRDs.
func (l *Lab) usesCRDs(ctx context.Context, crds []*object) error {
	if err := l.established(ctx, crds); err != nil || len(crds) == 0 {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(l.admin)
	if err != nil {
		return err
	}
	began := time.Now()
	for _, crd := range crds {
		strategy, _, _ := unstructured.NestedString(crd.Object, "spec", "conversion", "strategy")
		for _, resource := range resourcesOf(crd) {
			path := fmt.Sprintf("/apis/%s/%s/%s?fieldSelector=metadata.name%%3Dkoboshi-none", resource.Group, resource.Version, resource.Resource)
			var last error
			err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, servedWithin, true, func(ctx context.Context) (bool, error) {
				raw, err := client.RESTClient().Get().RequestURI(path).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
				last = err
				// The API server converts all stored objects before it answers the first request for a
				// version, and the instance that converts may not have started yet.
				late := err != nil && strategy == "Webhook" && time.Since(began) > conversionWithin
				return late || err == nil && strings.Contains(string(raw), l.column()), nil
			})
			if err != nil {
				return fmt.Errorf("waiting until the API server uses CustomResourceDefinition %s: %w", crd.GetName(), cmp.Or(last, err))
			}
		}
	}
	return nil
}

// resourcesOf returns the served resources of a CRD.
func resourcesOf(crd *object) (all []schema.GroupVersionResource) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if version, _ := v.(map[string]any); version["served"] == true {
			name, _ := version["name"].(string)
			all = append(all, schema.GroupVersionResource{Group: group, Version: name, Resource: plural})
		}
	}
	return all
}

// readWithin limits how long a version of an API may be unreadable, because a webhook has just started.
const readWithin = 5 * time.Second

// read reads all custom resources of the version in a slot, in every served version of their CRDs.
func (r *run) read(ctx context.Context, step string, slot int) error {
	reading := upgrade.Reading{Versions: map[string]map[state.Ref]state.Object{}, Served: map[string]bool{}, Failed: map[string]string{}, Storage: map[string]string{}}
	install := r.lab.subject(slot).Install
	for i := range install {
		crd := &install[i]
		if !served.IsCRD(crd) {
			continue
		}
		kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
		for _, resource := range resourcesOf(crd) {
			version := resource.GroupVersion().String()
			list, err := r.list(ctx, resource)
			if err != nil {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				reading.Failed[version+" "+kind] = err.Error()
				continue
			}
			reading.Served[version+" "+kind] = true
			if reading.Versions[version] == nil {
				reading.Versions[version] = map[state.Ref]state.Object{}
			}
			for _, item := range list.Items {
				ref := state.Ref{GroupKind: schema.GroupKind{Group: resource.Group, Kind: kind}, Namespace: item.GetNamespace(), Name: item.GetName()}
				reading.Versions[version][ref] = item.Object
			}
		}
		reading.Storage[kind+"."+resourceGroup(crd)] = resourceGroup(crd) + "/" + storageVersion(crd)
	}
	r.replacement.readings[step] = reading
	return nil
}

func (r *run) list(ctx context.Context, resource schema.GroupVersionResource) (list *unstructured.UnstructuredList, err error) {
	_ = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, readWithin, true, func(ctx context.Context) (bool, error) {
		list, err = r.lab.client.Resource(resource).List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	return list, err
}

func resourceGroup(crd *object) string {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	return group
}

func storageVersion(crd *object) string {
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if version, _ := v.(map[string]any); version["storage"] == true {
			name, _ := version["name"].(string)
			return name
		}
	}
	return ""
}
