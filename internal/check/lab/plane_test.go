package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab/election"
	"github.com/koboshi-dev/koboshi/internal/check/lab/inject"
	"github.com/koboshi-dev/koboshi/internal/check/lab/interference"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// twoVersions is a CRD whose objects are stored as v1alpha1.
const twoVersions = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  versions:
  - {name: v1, served: true, storage: false, schema: &schema {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1alpha1, served: true, storage: true, schema: *schema}
`

// gadgets is a second CRD. An installation may also contain objects of its own kinds.
const (
	gadgets = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gadgets.example.com},
	  spec: {group: example.com, scope: Cluster, names: {kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget},
	  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`
	widget = "{apiVersion: example.com/v1, kind: Widget, metadata: {namespace: default, name: installed}}"
	gadget = "{apiVersion: example.com/v1, kind: Gadget, metadata: {name: installed}}"
)

// The subject has all permissions, but its own identity instead of the administrator's.
const (
	account = "{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: default, name: subject}}"
	binding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: subject},
	  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin},
	  subjects: [{kind: ServiceAccount, namespace: default, name: subject}]}`
)

func fromYAML(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// A process can hold only one plane, so everything that needs one is in this test.
func TestOnARealPlane(t *testing.T) {
	l, err := New(t.Context(), Config{
		Subject: subject.Subject{Name: "x", Command: []string{"/bin/true"}, Install: []unstructured.Unstructured{
			*fromYAML(t, twoVersions), *fromYAML(t, gadgets), *fromYAML(t, widget), *fromYAML(t, gadget), *fromYAML(t, account), *fromYAML(t, binding),
			*fromYAML(t, converted),
		}, Identity: subject.ServiceAccount{Namespace: "default", Name: "subject"}, Webhook: subject.Webhook{Port: webhookPort}},
		Profile: "gc", Number: 1, Dir: t.TempDir(), Key: []byte("k"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Run("objects of installed kinds are installed", func(t *testing.T) { installed(t, l) })
	t.Run("another client's write provokes a conflict and leaves nothing behind", func(t *testing.T) { leavesNothing(t, l, true) })
	t.Run("a touch leaves nothing behind", func(t *testing.T) { leavesNothing(t, l, false) })
	t.Run("an overwrite with an older version removes the entry of the other client", func(t *testing.T) { overwritten(t, l) })
	t.Run("an earlier list is the server's own list", func(t *testing.T) { ownList(t, l) })
	t.Run("a list that the server does not have is not shown", func(t *testing.T) { noList(t, l) })
	t.Run("a released Lease is free", func(t *testing.T) { freed(t, l) })
	t.Run("Pods of Jobs end when the controller has seen everything that was held back", func(t *testing.T) { podsOfJobsEnd(t, l) })
	t.Run("an old token is renewed", func(t *testing.T) { renewed(t, l) })
	t.Run("webhooks of Services are called at the controller", func(t *testing.T) { callsServices(t, l) })
	t.Run("what a conversion drops does not come back", func(t *testing.T) { convertsObjects(t, l) })
	t.Run("a controller with webhooks that exits is not a failure of the plane", func(t *testing.T) { exitsAtOnce(t, l) })
}

func installed(t *testing.T, l *Lab) {
	for _, text := range []string{widget, gadget} {
		object := fromYAML(t, text)
		resource, err := l.resource(object)
		if err == nil {
			_, err = resource.Get(t.Context(), object.GetName(), metav1.GetOptions{})
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// samples are objects of kinds that the API server stores in different ways.
var samples = []string{
	"{apiVersion: v1, kind: ConfigMap, metadata: {name: touched, annotations: {a: b}}, data: {x: text}}",
	"{apiVersion: v1, kind: Secret, metadata: {name: touched}, stringData: {x: text}}",
	"{apiVersion: example.com/v1, kind: Widget, metadata: {name: touched}, spec: {size: 1}}",
	`{apiVersion: apps/v1, kind: Deployment, metadata: {name: touched}, spec: {selector: {matchLabels: {a: b}},
	  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}`,
}

// sample creates an object, which is deleted at the end of the test.
func sample(t *testing.T, l *Lab, text string) (dynamic.ResourceInterface, *unstructured.Unstructured) {
	t.Helper()
	object := fromYAML(t, text)
	resource, err := l.resource(object)
	if err != nil {
		t.Fatal(err)
	}
	if object, err = resource.Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := resource.Delete(context.WithoutCancel(t.Context()), object.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return resource, object
}

func leavesNothing(t *testing.T, l *Lab, conflict bool) {
	for _, text := range samples {
		resource, before := sample(t, l, text)
		if conflict {
			if err := interference.Sign(t.Context(), resource, before.GetName()); err != nil {
				t.Fatal(err)
			}
			signed := get(t, resource, before.GetName())
			signed.SetManagedFields(before.GetManagedFields())
			same(t, before, signed) // a client sees no other difference even while the entry is there
			if _, err := resource.Update(t.Context(), before, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
				t.Errorf("%s: an update of the earlier version returned %v", before.GetKind(), err)
			}
			if err := interference.Unsign(t.Context(), resource, before.GetName()); err != nil {
				t.Fatal(err)
			}
		} else if err := interference.Annotate(t.Context(), resource, before.GetName()); err != nil {
			t.Fatal(err)
		}
		after := get(t, resource, before.GetName())
		if !conflict {
			// The API server counts changes of a Deployment's annotations in its generation.
			after.SetGeneration(before.GetGeneration())
		}
		same(t, before, after)
	}
}

func get(t *testing.T, resource dynamic.ResourceInterface, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := resource.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// same checks that two states of an object differ in the resourceVersion, and in nothing
// else.
func same(t *testing.T, before, after *unstructured.Unstructured) {
	t.Helper()
	if before.GetResourceVersion() == after.GetResourceVersion() {
		t.Errorf("%s: the resourceVersion is the same", before.GetKind())
	}
	after = after.DeepCopy()
	after.SetResourceVersion(before.GetResourceVersion())
	if diff := cmp.Diff(before.Object, after.Object); diff != "" {
		t.Errorf("%s (-before +after):\n%s", before.GetKind(), diff)
	}
	if data, _ := json.Marshal(after); strings.Contains(string(data), "check.koboshi.dev/") {
		t.Errorf("a mark is left: %s", data)
	}
}

func overwritten(t *testing.T, l *Lab) {
	resource, old := sample(t, l, samples[2])
	if err := interference.Sign(t.Context(), resource, old.GetName()); err != nil {
		t.Fatal(err)
	}
	entries := func(object *unstructured.Unstructured) (n int) {
		for _, e := range object.GetManagedFields() {
			if e.Manager == fault.OtherClient {
				n++
			}
		}
		return n
	}
	current := get(t, resource, old.GetName())
	current.SetLabels(map[string]string{"rightly": "so"})
	kept, err := resource.Update(t.Context(), current, metav1.UpdateOptions{FieldManager: "controller"})
	if err != nil || entries(kept) != 1 {
		t.Fatalf("an update of the current version leaves %d entries: %v", entries(kept), err)
	}
	old.SetResourceVersion(kept.GetResourceVersion())
	lost, err := resource.Update(t.Context(), old, metav1.UpdateOptions{FieldManager: "controller"})
	if err != nil || entries(lost) != 0 {
		t.Errorf("an update of the older version leaves %d entries: %v", entries(lost), err)
	}
	if err := interference.Unsign(t.Context(), resource, old.GetName()); err != nil {
		t.Errorf("there is nothing to remove: %v", err)
	}
}

// behind starts a proxy that shows the widgets, ConfigMaps and Secrets as they were at the given
// version.
func behind(t *testing.T, l *Lab, version string) (config *rest.Config, shown, failed chan string) {
	t.Helper()
	p, err := apiproxy.Start(t.Context(), apiproxy.Config{Upstream: l.identity})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	shown, failed = make(chan string, 100), make(chan string, 100)
	p.Past(&apiproxy.Past{
		Resource:        func(trace.Target) bool { return true },
		ResourceVersion: version,
		Shown:           func() { shown <- version },
		Failed:          func(reason string) { failed <- reason },
	})
	data, err := p.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	if config, err = clientcmd.RESTConfigFromKubeConfig(data); err != nil {
		t.Fatal(err)
	}
	return config, shown, failed
}

func ownList(t *testing.T, l *Lab) {
	version := ""
	for _, text := range []string{
		"{apiVersion: example.com/v1, kind: Widget, metadata: {name: old, labels: {list: x}}, spec: {size: 1}}",
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: old, labels: {list: x}}, data: {x: earlier}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: old, labels: {list: x}}, stringData: {x: earlier}}",
	} {
		_, object := sample(t, l, text)
		version = object.GetResourceVersion()
	}
	for _, text := range []string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: new, labels: {list: x}}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: new, labels: {list: x}}}",
		"{apiVersion: example.com/v1, kind: Widget, metadata: {name: new, labels: {list: x}}}",
	} {
		sample(t, l, text)
	}
	config, shown, _ := behind(t, l, version)
	options := metav1.ListOptions{ResourceVersion: "0", LabelSelector: "list=x"}

	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, served := range []string{"v1", "v1alpha1"} {
		list, err := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: served, Resource: "widgets"}).List(t.Context(), options)
		if err != nil || len(list.Items) != 1 || list.GetResourceVersion() != version {
			t.Fatalf("the list of %s shows %v, %v", served, list, err)
		}
		if got := list.Items[0].GetAPIVersion(); got != "example.com/"+served || list.GetAPIVersion() != got {
			t.Errorf("the list of %s holds an object of %s", served, got)
		}
	}
	typed, err := kubernetes.NewForConfig(&rest.Config{
		Host: config.Host, BearerToken: config.BearerToken, TLSClientConfig: config.TLSClientConfig,
		ContentConfig: rest.ContentConfig{AcceptContentTypes: "application/vnd.kubernetes.protobuf", ContentType: "application/vnd.kubernetes.protobuf"},
	})
	if err != nil {
		t.Fatal(err)
	}
	maps, err := typed.CoreV1().ConfigMaps("").List(t.Context(), options)
	if err != nil || len(maps.Items) != 1 || maps.Items[0].Data["x"] != "earlier" || maps.ResourceVersion != version {
		t.Errorf("the list of ConfigMaps shows %v, %v", maps, err)
	}
	secrets, err := typed.CoreV1().Secrets("default").List(t.Context(), options)
	if err != nil || len(secrets.Items) != 1 || string(secrets.Items[0].Data["x"]) != "earlier" {
		t.Errorf("the list of Secrets shows %v, %v", secrets, err)
	}
	table := rawList(t, config, "/api/v1/configmaps?labelSelector=list%3Dx&resourceVersion=0", "application/json;as=Table;v=v1;g=meta.k8s.io")
	if rows, _ := table["rows"].([]any); table["kind"] != "Table" || len(rows) != 1 {
		t.Errorf("the table is %v", table)
	}
	if got := len(shown); got != 5 {
		t.Errorf("%d lists were shown, want 5", got)
	}
}

func rawList(t *testing.T, config *rest.Config, path, accept string) (answer map[string]any) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil {
		err = json.Unmarshal(data, &answer)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return answer
}

func noList(t *testing.T, l *Lab) {
	_, object := sample(t, l, samples[0])
	const refused = "0" // the API server has no list at exactly this version
	resource := corev1.SchemeGroupVersion.WithResource("configmaps")
	if err := inject.Listable(t.Context(), l.otherClient(), resource, refused); err == nil {
		t.Error("a list that the server refuses counts as available")
	}
	if err := inject.Listable(t.Context(), l.otherClient(), resource, object.GetResourceVersion()); err != nil {
		t.Error(err)
	}
	config, shown, failed := behind(t, l, refused)
	list := rawList(t, config, "/api/v1/namespaces/default/configmaps?resourceVersion=0&fieldSelector=metadata.name%3Dtouched", "application/json")
	if items, _ := list["items"].([]any); len(items) != 1 {
		t.Errorf("the current list is not shown: %v", list)
	}
	if len(failed) != 1 || len(shown) != 0 {
		t.Errorf("%d lists failed, and %d were shown", len(failed), len(shown))
	}
}

func freed(t *testing.T, l *Lab) {
	held := func(name, fields string) dynamic.ResourceInterface {
		resource, _ := sample(t, l, fmt.Sprintf("{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: %s}, spec: {holderIdentity: gone%s}}", name, fields))
		return resource
	}
	leases := held("expires", fmt.Sprintf(", leaseDurationSeconds: 15, leaseTransitions: 3, renewTime: %q", time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")))
	held("for-life", "")
	for name, want := range map[string]bool{"expires": true, "for-life": false, "absent": false} {
		if notes := election.Release(t.Context(), l.client, []string{"default/" + name}); slices.Equal(notes, []string{"Lease default/" + name + " expired while the controller was down"}) != want {
			t.Errorf("%s: %v", name, notes)
		}
	}
	var spec coordinationv1.LeaseSpec
	data, err := json.Marshal(get(t, leases, "expires").Object["spec"])
	if err == nil {
		err = json.Unmarshal(data, &spec)
	}
	if err != nil || *spec.HolderIdentity != "" || *spec.LeaseDurationSeconds != 1 || *spec.LeaseTransitions != 3 {
		t.Errorf("the Lease holds %s, %v", data, err)
	}
	if holder, _, _ := unstructured.NestedString(get(t, leases, "for-life").Object, "spec", "holderIdentity"); holder != "gone" {
		t.Errorf("the Lease for life is held by %q", holder)
	}
}

func renewed(t *testing.T, l *Lab) {
	first := l.identity.BearerToken
	if err := l.renew(t.Context()); err != nil || l.identity.BearerToken != first {
		t.Fatalf("a fresh token was renewed: %v", err)
	}
	l.expires = time.Now().Add(time.Hour)
	if err := l.renew(t.Context()); err != nil || l.identity.BearerToken == first || time.Until(l.expires) < tokenLife/2 {
		t.Fatalf("the token expires at %v, %v", l.expires, err)
	}
	config, _, _ := behind(t, l, "0")
	if list := rawList(t, config, "/api/v1/namespaces", "application/json"); list["kind"] != "NamespaceList" {
		t.Errorf("the new token is refused: %v", list)
	}
}
