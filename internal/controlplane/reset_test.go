package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/controlplane/baseline"
	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/memory"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	allNodes    = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	claims      = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	classes     = schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	events      = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	widgets     = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// A lab is a plane that a test may change in any way.
type lab struct {
	testing.TB
	*Plane
	typed   *kubernetes.Clientset
	dynamic dynamic.Interface
}

func newLab(t testing.TB, profile string, nodes int) lab {
	t.Helper()
	chosen, err := controllers.Lookup(profile)
	if err != nil {
		t.Fatal(err)
	}
	plane, err := Start(t.Context(), Options{Profile: chosen, Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	untyped, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return lab{TB: t, Plane: plane, typed: typed, dynamic: untyped}
}

func (l lab) ok(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l lab) checkpoint() {
	l.Helper()
	l.ok(l.Checkpoint(l.Context()))
}

func (l lab) reset() {
	l.Helper()
	l.ok(l.Reset(l.Context()))
}

// until calls ask until it returns true.
func (l lab) until(what string, ask func(context.Context) (bool, error)) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), within)
	defer cancel()
	l.ok(l.poll(ctx, what, ask))
}

func object(apiVersion, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	return o
}

func configMap(name, value string) *unstructured.Unstructured {
	o := object("v1", "ConfigMap", name)
	o.Object["data"] = map[string]any{"key": value}
	return o
}

// event returns an Event for a ConfigMap.
func event(name, namespace string) *unstructured.Unstructured {
	o := object("v1", "Event", name)
	o.Object["involvedObject"] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "namespace": namespace, "name": "config-1"}
	return o
}

// widget returns a widget. If final is set, the widget has a finalizer that nothing
// removes.
func widget(name string, final bool) *unstructured.Unstructured {
	o := object("example.com/v1", "Widget", name)
	o.Object["spec"] = map[string]any{"size": int64(1)}
	if final {
		o.SetFinalizers([]string{"example.com/never"})
	}
	return o
}

// widgetDefinition returns the CRD of widgets. The argument fields maps the names of the
// fields in a widget's spec to their types.
func widgetDefinition(fields map[string]string) *unstructured.Unstructured {
	properties := map[string]any{}
	for name, kind := range fields {
		properties[name] = map[string]any{"type": kind}
	}
	o := object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "widgets.example.com")
	o.Object["spec"] = map[string]any{
		"group": "example.com", "scope": "Namespaced",
		"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget"},
		"versions": []any{map[string]any{
			"name": "v1", "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type":       "object",
				"properties": map[string]any{"spec": map[string]any{"type": "object", "properties": properties}},
			}},
		}},
	}
	return o
}

func (l lab) create(resource schema.GroupVersionResource, namespace string, o *unstructured.Unstructured) *unstructured.Unstructured {
	l.Helper()
	created, err := l.dynamic.Resource(resource).Namespace(namespace).Create(l.Context(), o, metav1.CreateOptions{})
	l.ok(err)
	return created
}

func (l lab) get(resource schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	return l.dynamic.Resource(resource).Namespace(namespace).Get(l.Context(), name, metav1.GetOptions{})
}

// delete deletes an object. It is not an error if the object is already gone.
func (l lab) delete(resource schema.GroupVersionResource, namespace, name string) {
	l.Helper()
	if err := l.dynamic.Resource(resource).Namespace(namespace).Delete(l.Context(), name, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
		l.ok(err)
	}
}

func (l lab) patch(resource schema.GroupVersionResource, namespace, name, patch string) {
	l.Helper()
	_, err := l.dynamic.Resource(resource).Namespace(namespace).Patch(l.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if !apierrors.IsNotFound(err) {
		l.ok(err)
	}
}

// define creates a CRD and waits until it is served.
func (l lab) define(o *unstructured.Unstructured) {
	l.Helper()
	l.create(definitions, "", o)
	l.until("widgets to be served", func(ctx context.Context) (bool, error) {
		_, err := l.dynamic.Resource(widgets).List(ctx, metav1.ListOptions{})
		return true, err
	})
}

func (l lab) service(name string, change func(*corev1.ServiceSpec)) (*corev1.Service, error) {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(80)}}},
	}
	if change != nil {
		change(&s.Spec)
	}
	return l.typed.CoreV1().Services("base").Create(l.Context(), s, metav1.CreateOptions{})
}

// everything returns all objects of all kinds in discovery, listed with these
// options. Objects that the plane may write at any time are omitted.
func (l lab) everything(options metav1.ListOptions) map[string]map[string]any {
	l.Helper()
	lists, err := l.typed.Discovery().ServerPreferredResources()
	l.ok(err)
	all := map[string]map[string]any{}
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "create"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		l.ok(err)
		for _, r := range list.APIResources {
			objects, err := l.dynamic.Resource(version.WithResource(r.Name)).List(l.Context(), options)
			if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
				continue
			}
			l.ok(err)
			for _, o := range objects.Items {
				if r.Kind == "Lease" && slices.Contains([]string{"kube-system", "kube-node-lease"}, o.GetNamespace()) {
					continue // a heartbeat of the plane itself
				}
				if r.Kind == "Event" && !strings.HasPrefix(o.GetName(), "test-") {
					// Controllers write Events from a separate goroutine. No metric
					// covers that goroutine, so it may write after Reset has returned.
					continue
				}
				unstructured.RemoveNestedField(o.Object, "metadata", "resourceVersion")
				all[strings.Join([]string{r.Kind, version.Group, o.GetNamespace(), o.GetName()}, "/")] = o.Object
			}
		}
	}
	return all
}

func (l lab) requireEqual(want map[string]map[string]any) {
	l.Helper()
	for _, options := range []metav1.ListOptions{{ResourceVersion: "0"}, {}} {
		if diff := cmp.Diff(want, l.everything(options)); diff != "" {
			l.Errorf("if read with resourceVersion %q, the plane differs from the baseline (-want +got):\n%s", options.ResourceVersion, diff)
		}
	}
}

// furnish creates objects of most kinds in the namespace base.
func (l lab) furnish() {
	l.Helper()
	l.create(namespaces, "", object("v1", "Namespace", "base"))
	for i := range 5 {
		l.create(configMaps, "base", configMap("config-"+strconv.Itoa(i), "original"))
	}
	owner, err := l.get(configMaps, "base", "config-0")
	l.ok(err)
	owned := configMap("owned", "original")
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.GetName(), UID: owner.GetUID()}})
	l.create(configMaps, "base", owned)
	l.define(widgetDefinition(map[string]string{"size": "integer"}))
	l.create(widgets, "base", widget("plain", false))
	l.create(widgets, "base", widget("final", true))
	l.create(events, "base", event("test-kept", "base"))
	_, err = l.service("address", nil)
	l.ok(err)
	_, err = l.service("port", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort })
	l.ok(err)
}

// deploy runs two Pods.
func (l lab) deploy(name string) {
	l.Helper()
	labels := map[string]any{"app": name}
	o := object("apps/v1", "Deployment", name)
	o.Object["spec"] = map[string]any{
		"replicas": int64(2),
		"selector": map[string]any{"matchLabels": labels},
		"template": map[string]any{
			"metadata": map[string]any{"labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web"}}},
		},
	}
	l.create(deployments, "base", o)
	l.until(name+" to run", func(context.Context) (bool, error) {
		d, err := l.get(deployments, "base", name)
		if err != nil {
			return false, err
		}
		ready, _, err := unstructured.NestedInt64(d.Object, "status", "readyReplicas")
		return ready == 2, err
	})
}

// claim creates a claim and waits until it is bound.
func (l lab) claim(name string) {
	l.Helper()
	o := object("v1", "PersistentVolumeClaim", name)
	o.Object["spec"] = map[string]any{
		"accessModes": []any{"ReadWriteOnce"},
		"resources":   map[string]any{"requests": map[string]any{"storage": "1Gi"}},
	}
	l.create(claims, "base", o)
	l.until(name+" to be bound", func(context.Context) (bool, error) {
		o, err := l.get(claims, "base", name)
		if err != nil {
			return false, err
		}
		phase, _, err := unstructured.NestedString(o.Object, "status", "phase")
		return phase == "Bound", err
	})
}

func TestResetUndoesAllInProfileAPI(t *testing.T) { testResetUndoesAll(t, "api", 0) }

func TestResetUndoesAllInProfileGC(t *testing.T) { testResetUndoesAll(t, "gc", 0) }

func TestResetUndoesAllInProfileWorkloads(t *testing.T) { testResetUndoesAll(t, "workloads", 1) }

func TestResetUndoesAllInProfileFull(t *testing.T) { testResetUndoesAll(t, "full", 2) }

func testResetUndoesAll(t *testing.T, profile string, nodes int) {
	if !inOwnProcess(t) {
		return
	}
	l := newLab(t, profile, nodes)
	l.furnish()
	if nodes > 0 {
		l.deploy("web")
		l.claim("kept")
		l.claim("lost")
	}
	if err := l.Reset(t.Context()); !errors.Is(err, baseline.ErrNone) {
		t.Errorf("Reset before the first Checkpoint: %v, want baseline.ErrNone", err)
	}
	l.checkpoint()
	want := l.everything(metav1.ListOptions{})
	before := l.get1("base")

	// Some objects are created.
	l.create(namespaces, "", object("v1", "Namespace", "extra"))
	l.create(configMaps, "extra", configMap("extra", "extra"))
	l.create(widgets, "extra", widget("extra", true))
	gadgets := widgetDefinition(map[string]string{"size": "integer"})
	gadgets.SetName("gadgets.example.org")
	for value, field := range map[string][]string{"example.org": {"spec", "group"}, "gadgets": {"spec", "names", "plural"}, "gadget": {"spec", "names", "singular"}, "Gadget": {"spec", "names", "kind"}} {
		l.ok(unstructured.SetNestedField(gadgets.Object, value, field...))
	}
	l.create(definitions, "", gadgets)
	l.create(events, "extra", event("test-extra", "extra"))
	// Some objects are changed.
	l.patch(configMaps, "base", "config-1", `{"data":{"key":"changed"},"metadata":{"labels":{"changed":"yes"}}}`)
	l.patch(widgets, "base", "plain", `{"spec":{"size":2}}`)
	if nodes > 0 {
		l.deploy("extra")
		l.claim("extra")
		l.delete(claims, "base", "lost")
		l.delete(classes, "", "standard")
		l.delete(deployments, "base", "web") // the ReplicaSet and the Pods are then deleted, too
		l.delete(allNodes, "", "node-1")
	}
	// Some objects are deleted, some are deleted and created again, and some are stuck in
	// deletion.
	l.delete(configMaps, "base", "config-0") // the garbage collector deletes its dependent
	l.delete(configMaps, "base", "config-2")
	l.create(configMaps, "base", configMap("config-2", "another"))
	l.delete(widgets, "base", "final")
	l.delete(namespaces, "", "extra")
	l.delete(namespaces, "", "base")

	l.reset()
	l.requireEqual(want)
	after := l.get1("base")
	if after.GetUID() != before.GetUID() || version(t, after) <= version(t, before) {
		t.Errorf("the namespace came back with UID %s and version %s, had %s and %s",
			after.GetUID(), after.GetResourceVersion(), before.GetUID(), before.GetResourceVersion())
	}
	if phase, _, _ := unstructured.NestedString(after.Object, "status", "phase"); phase != "Active" {
		t.Errorf("the namespace is %s", phase)
	}
	// The namespace can be used again.
	l.create(configMaps, "base", configMap("new", "new"))
	l.create(widgets, "base", widget("new", false))
	l.reset()
	l.requireEqual(want)
}

func (l lab) get1(namespace string) *unstructured.Unstructured {
	l.Helper()
	o, err := l.get(namespaces, "", namespace)
	l.ok(err)
	return o
}

func version(t testing.TB, o metav1.Object) int64 {
	t.Helper()
	v, err := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDefinitionThatResetRemovedCanBeCreatedAnewWithAnotherSchema(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	l := newLab(t, "api", 0)
	l.create(namespaces, "", object("v1", "Namespace", "base"))
	l.checkpoint()
	want := l.everything(metav1.ListOptions{})
	for round, field := range []string{"colour", "weight", "height"} {
		l.define(widgetDefinition(map[string]string{field: "string"}))
		w := widget("one", true)
		w.Object["spec"] = map[string]any{"colour": "a", "weight": "b", "height": "c"}
		created := l.create(widgets, "base", w)
		if diff := cmp.Diff(map[string]any{field: map[string]any{"colour": "a", "weight": "b", "height": "c"}[field]}, created.Object["spec"]); diff != "" {
			t.Errorf("round %d: the schema in force is not the new one (-want +got):\n%s", round, diff)
		}
		l.delete(definitions, "", "widgets.example.com") // is blocked by the finalizer
		watched, err := l.dynamic.Resource(widgets).Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.GetResourceVersion()})
		l.ok(err)

		l.reset()
		if _, err := l.get(widgets, "base", "one"); !apierrors.IsNotFound(err) {
			t.Errorf("round %d: the widget: %v, want that it is not found", round, err)
		}
		groups, err := l.typed.Discovery().ServerGroups()
		l.ok(err)
		for _, g := range groups.Groups {
			if g.Name == widgets.Group {
				t.Errorf("round %d: discovery lists %s", round, g.Name)
			}
		}
		var events []watch.EventType
		for e := range watched.ResultChan() {
			events = append(events, e.Type)
			if e.Type == watch.Deleted {
				break
			}
		}
		watched.Stop()
		if !slices.Contains(events, watch.Deleted) || slices.Contains(events, watch.Error) {
			t.Errorf("round %d: the watch showed %v, want a DELETED and no ERROR", round, events)
		}
		l.requireEqual(want)
	}
}

func TestWatchersSeeAResetAsOrdinaryEvents(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	l := newLab(t, "api", 0)
	l.furnish()
	l.checkpoint()
	list, err := l.dynamic.Resource(configMaps).Namespace("base").List(t.Context(), metav1.ListOptions{})
	l.ok(err)
	watched, err := l.dynamic.Resource(configMaps).Namespace("base").Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	l.ok(err)
	factory := informers.NewSharedInformerFactoryWithOptions(l.typed, 0, informers.WithNamespace("base"))
	informer := factory.Core().V1().ConfigMaps().Informer()
	l.ok(informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { t.Errorf("the informer lost its watch: %v", err) }))
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())

	l.create(configMaps, "base", configMap("extra", "extra"))
	l.patch(configMaps, "base", "config-1", `{"data":{"key":"changed"}}`)
	l.delete(configMaps, "base", "config-2")
	l.delete(configMaps, "base", "config-3")
	l.create(configMaps, "base", configMap("config-3", "another"))
	l.reset()
	last := l.create(configMaps, "base", configMap("after", "after"))

	events := map[string][]watch.EventType{}
	previous := int64(0)
	for e := range watched.ResultChan() {
		o, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatalf("the watch showed %v %v", e.Type, e.Object)
		}
		if v := version(t, o); v <= previous {
			t.Errorf("%s %s has version %d after %d", e.Type, o.GetName(), v, previous)
		} else {
			previous = v
		}
		events[o.GetName()] = append(events[o.GetName()], e.Type)
		if o.GetName() == "after" {
			break
		}
	}
	watched.Stop()
	if diff := cmp.Diff(map[string][]watch.EventType{
		"extra":    {watch.Added, watch.Deleted},
		"config-1": {watch.Modified, watch.Modified},
		"config-2": {watch.Deleted, watch.Added},
		"config-3": {watch.Deleted, watch.Added, watch.Deleted, watch.Added},
		"after":    {watch.Added},
	}, events); diff != "" {
		t.Errorf("events by object (-want +got):\n%s", diff)
	}
	l.until("the informer", func(context.Context) (bool, error) {
		_, exists, err := informer.GetStore().GetByKey("base/after")
		return exists, err
	})
	held := map[string]types.UID{"after": last.GetUID()}
	for _, o := range list.Items {
		held[o.GetName()] = o.GetUID()
	}
	for _, o := range informer.GetStore().List() {
		c := o.(*corev1.ConfigMap)
		if held[c.Name] != c.UID {
			t.Errorf("the informer holds %s with UID %q, want %q", c.Name, c.UID, held[c.Name])
		}
		delete(held, c.Name)
	}
	if len(held) > 0 {
		t.Errorf("the informer does not hold %v", held)
	}
}

func TestAddressesAndPortsAreFreeAfterAResetAndGivenOnce(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	l := newLab(t, "api", 0)
	l.create(namespaces, "", object("v1", "Namespace", "base"))
	kept, err := l.service("kept", func(s *corev1.ServiceSpec) { s.Type = corev1.ServiceTypeNodePort })
	l.ok(err)
	l.checkpoint()
	// The Service range has 254 addresses; the Services "kubernetes" and "kept" use two of
	// them.
	const free = 252
	for round := range 2 {
		l.delete(services, "base", "kept")
		var last *corev1.Service
		given := map[string]bool{}
		for i := range free {
			s, err := l.service("s"+strconv.Itoa(i), nil)
			if err != nil {
				t.Fatalf("round %d, service %d: %v", round, i, err)
			}
			if given[s.Spec.ClusterIP] {
				t.Errorf("round %d: the address %s was given to two Services", round, s.Spec.ClusterIP)
			}
			given[s.Spec.ClusterIP], last = true, s
		}
		l.reset()
		if _, err := l.service("thief", func(s *corev1.ServiceSpec) { s.ClusterIP = kept.Spec.ClusterIP }); err == nil {
			t.Errorf("round %d: the address of a restored Service was given away", round)
		}
		if _, err := l.service("thief", func(s *corev1.ServiceSpec) {
			s.Type, s.Ports[0].NodePort = corev1.ServiceTypeNodePort, kept.Spec.Ports[0].NodePort
		}); err == nil {
			t.Errorf("round %d: the port of a restored Service was given away", round)
		}
		if _, err := l.service("heir", func(s *corev1.ServiceSpec) { s.ClusterIP = last.Spec.ClusterIP }); err != nil {
			t.Errorf("round %d: the address of a Service that Reset removed: %v", round, err)
		}
		l.reset()
	}
}

func TestRandomChangesAreUndoneInProfileAPI(t *testing.T) { testRandomChanges(t, "api") }

func TestRandomChangesAreUndoneInProfileGC(t *testing.T) { testRandomChanges(t, "gc") }

// randomRounds can be small, since each run of the suite tries different changes.
const randomRounds = 40

func testRandomChanges(t *testing.T, profile string) {
	if !inOwnProcess(t) {
		return
	}
	l := newLab(t, profile, 0)
	l.furnish()
	l.checkpoint()
	want := l.everything(metav1.ListOptions{})
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var longest time.Duration
	for round := range randomRounds {
		var done []string
		for range 1 + random.IntN(12) {
			done = append(done, l.mutate(random))
		}
		begun := time.Now()
		l.reset()
		longest = max(longest, time.Since(begun))
		if diff := cmp.Diff(want, l.everything(metav1.ListOptions{ResourceVersion: "0"})); diff != "" {
			t.Errorf("the plane differs from the baseline (-want +got):\n%s", diff)
		}
		if t.Failed() {
			t.Fatalf("round %d, after %q", round, done)
		}
	}
	l.requireEqual(want)
	t.Logf("the longest reset took %v", longest)
}

// mutate makes one change and returns a description of it. An error is ignored if earlier changes
// make this change impossible.
func (l lab) mutate(random *rand.Rand) string {
	l.Helper()
	name := "config-" + strconv.Itoa(random.IntN(5))
	extra := "extra-" + strconv.FormatUint(random.Uint64(), 36)
	try := func(resource schema.GroupVersionResource, namespace string, o *unstructured.Unstructured) {
		_, err := l.dynamic.Resource(resource).Namespace(namespace).Create(l.Context(), o, metav1.CreateOptions{})
		// No object can be created in a namespace that is being deleted, or of a kind
		// whose CRD is being deleted.
		if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsMethodNotSupported(err) {
			l.ok(err)
		}
	}
	moves := []struct {
		what string
		do   func()
	}{
		{"create config map", func() { try(configMaps, "base", configMap(extra, extra)) }},
		{"change " + name, func() { l.patch(configMaps, "base", name, `{"data":{"key":"`+extra+`"}}`) }},
		{"delete " + name, func() { l.delete(configMaps, "base", name) }},
		{"recreate " + name, func() { l.delete(configMaps, "base", name); try(configMaps, "base", configMap(name, extra)) }},
		{"delete owned", func() { l.delete(configMaps, "base", "owned") }},
		{"create widget", func() { try(widgets, "base", widget(extra, random.IntN(2) == 0)) }},
		{"change widget", func() {
			l.patch(widgets, "base", "plain", fmt.Sprintf(`{"spec":{"size":%d}}`, random.IntN(1000)))
		}},
		{"delete widget", func() { l.delete(widgets, "base", []string{"plain", "final"}[random.IntN(2)]) }},
		{"create namespace", func() {
			try(namespaces, "", object("v1", "Namespace", extra))
			try(configMaps, extra, configMap("inside", extra))
			if random.IntN(2) == 0 {
				l.delete(namespaces, "", extra)
			}
		}},
		{"delete namespace", func() { l.delete(namespaces, "", "base") }},
		{"create service", func() { try(services, "base", serviceObject(extra)) }},
		{"delete service", func() {
			l.delete(services, "base", []string{"address", "port"}[random.IntN(2)])
		}},
		{"change CRD", func() {
			l.patch(definitions, "", "widgets.example.com", `{"metadata":{"labels":{"changed":"`+extra+`"}},"spec":{"names":{"shortNames":["wi"]}}}`)
		}},
		{"delete CRD", func() {
			if random.IntN(10) == 0 { // rarely, since a reset may then take 5 s
				l.delete(definitions, "", "widgets.example.com")
			}
		}},
	}
	move := moves[random.IntN(len(moves))]
	move.do()
	return move.what
}

func serviceObject(name string) *unstructured.Unstructured {
	o := object("v1", "Service", name)
	o.Object["spec"] = map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}
	return o
}

func TestResetOfSomebodyElsesStoreIsRefused(t *testing.T) {
	t.Parallel()
	foreign := &Plane{tasks: newTasks(t.Context())}
	if err := foreign.Reset(t.Context()); !errors.Is(err, ErrForeignStore) {
		t.Errorf("Reset with another's etcd: %v, want ErrForeignStore", err)
	}
	if err := foreign.Checkpoint(t.Context()); !errors.Is(err, ErrForeignStore) {
		t.Errorf("Checkpoint with another's etcd: %v, want ErrForeignStore", err)
	}
}

func BenchmarkReset(b *testing.B) {
	l := newLab(b, "api", 0)
	l.furnish()
	l.checkpoint()
	go memory.Settle(b.Context()) // as koboshi up does
	for _, objects := range []int{10, 100, 1000} {
		b.Run("objects="+strconv.Itoa(objects), func(b *testing.B) {
			l.TB = b
			for b.Loop() {
				b.StopTimer()
				for i := range objects / 2 {
					l.create(configMaps, "base", configMap("extra-"+strconv.Itoa(i), "extra"))
					l.create(widgets, "base", widget("extra-"+strconv.Itoa(i), false))
				}
				b.StartTimer()
				l.reset()
			}
		})
	}
}
