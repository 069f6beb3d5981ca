package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// No takeout covers the following behavior, because no flag can remove it. Only the
// assertions of the tests themselves show that the claims in this list hold.
//
//   - kube-apiserver does not start with apiextensions.k8s.io/v1 disabled. Some features of CRDs
//     are locked on (CustomResourceFieldSelectors, CRDValidationRatcheting); others have lost their
//     gates long ago, for example conversion webhooks, CEL rules, server-side apply and strict
//     validation.
//   - Every API server supports Tables, kubectl explain and kubectl scale.
//   - The admission plugin itself applies a webhook's conditions and failure policy, and makes its
//     request; without the plugin no webhook is called at all.
//   - kube-apiserver does not start with apiregistration.k8s.io/v1 disabled.
//     No extension API server trusts a kube-apiserver without a certificate.
var apiTakeouts = []takeout{
	{"TestMutatingWebhook.*", "--kube-apiserver-arg=disable-admission-plugins=MutatingAdmissionWebhook"},
	{"TestValidatingWebhook.*|TestUnreachableWebhook.*|TestLateWebhook.*|TestWebhookSees.*|TestMatchConditions.*", "--kube-apiserver-arg=disable-admission-plugins=ValidatingAdmissionWebhook"},
	{"TestValidatingAdmissionPolicy.*", "--kube-apiserver-arg=disable-admission-plugins=ValidatingAdmissionPolicy"},
	{"TestStatusOfValidatingAdmissionPolicy.*", "--controllers=-validatingadmissionpolicy-status-controller"},
	{"TestMutatingAdmissionPolicy.*", "--kube-apiserver-arg=disable-admission-plugins=MutatingAdmissionPolicy"},
	{"TestMutatingAdmissionPolicy.*", "--kube-apiserver-arg=feature-gates=MutatingAdmissionPolicy=false"},
	{"TestResourceQuota.*", "--kube-apiserver-arg=disable-admission-plugins=ResourceQuota"},
	{"TestResourceQuota.*", "--controllers=-resourcequota-controller"},
	{"TestLimitRange.*", "--kube-apiserver-arg=disable-admission-plugins=LimitRanger"},
	{"TestPodSecurity.*", "--kube-apiserver-arg=disable-admission-plugins=PodSecurity"},

	{"TestAggregatedAPI.*|TestKubectlGetReturns.*|TestExtension.*|TestPlaneAuthorizes.*|TestOutageOfExtension.*", "--kube-apiserver-arg=proxy-client-cert-file= --kube-apiserver-arg=proxy-client-key-file="},
	{"TestPlaneAuthorizes.*", "--kube-apiserver-arg=authorization-mode=AlwaysAllow"},
}

// definition is a CustomResourceDefinition in a group that no other test uses.
type definition struct {
	plane  *plane
	object *unstructured.Unstructured
	group  string
	plural string
}

// define creates the CRD in a file of testdata and waits until clients find it. The CRD
// stays until a test or a cleanup deletes it.
func (p *plane) define(t *testing.T, file string, v values) *definition {
	t.Helper()
	group := "g" + rand.String(8) + ".example.com"
	filled := values{"GROUP": group}
	for name, value := range v {
		filled[name] = value
	}
	d := &definition{plane: p, object: object(t, manifest(t, file, filled)), group: group}
	d.plural, _, _ = unstructured.NestedString(d.object.Object, "spec", "names", "plural")
	d.create(t)
	return d
}

func (d *definition) create(t *testing.T) {
	t.Helper()
	client, name := d.plane.dynamic.Resource(definitions), d.object.GetName()
	if _, err := client.Create(t.Context(), d.object.DeepCopy(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The server may still serve a deleted CRD of the same name. Once the new CRD is
	// Established, the server has seen it.
	eventually(t, name+" is established", func(ctx context.Context) error { return established(ctx, client, name) })
	eventually(t, name+" is served", func(ctx context.Context) error {
		if _, err := d.in("v1", "default").List(ctx, metav1.ListOptions{}); err != nil {
			return err
		}
		found, err := d.plane.client.Discovery().ServerResourcesForGroupVersion(d.group + "/v1")
		if err == nil && len(found.APIResources) == 0 {
			err = errors.New("discovery lists no resource")
		}
		return err
	})
}

// delete deletes the CRD, which disappears when its objects are gone.
func (d *definition) delete(ctx context.Context) error {
	return d.plane.dynamic.Resource(definitions).Delete(ctx, d.object.GetName(), metav1.DeleteOptions{})
}

// temporary deletes the CRD when the test ends.
func (d *definition) temporary(t *testing.T) *definition {
	t.Cleanup(func() { _ = d.delete(context.Background()) })
	return d
}

// in returns a client for the objects of a namespace in one version.
func (d *definition) in(version, namespace string) dynamic.ResourceInterface {
	gvr := schema.GroupVersionResource{Group: d.group, Version: version, Resource: d.plural}
	return d.plane.dynamic.Resource(gvr).Namespace(namespace)
}

// make returns an object with a name and a spec in YAML.
func (d *definition) make(t *testing.T, version, name, spec string) *unstructured.Unstructured {
	t.Helper()
	kind, _, _ := unstructured.NestedString(d.object.Object, "spec", "names", "kind")
	return object(t, fmt.Sprintf("apiVersion: %s/%s\nkind: %s\nmetadata: {name: %s}\nspec: %s", d.group, version, kind, name, spec))
}

var (
	sharedWidgets     *definition
	sharedWidgetsOnce sync.Once
)

// widgets returns the CRD of testdata/widgets.yaml on the shared plane, for tests that create
// widgets but do not change the CRD. The server delays the first object of a CRD by two seconds.
// Because the tests share the CRD, only one of them has to wait.
func widgets(t *testing.T) (*definition, string) {
	t.Helper()
	p := sharedPlane(t)
	sharedWidgetsOnce.Do(func() { sharedWidgets = p.define(t, "widgets.yaml", nil) })
	if sharedWidgets == nil {
		t.Fatal("the widgets are not defined; see the first test that needed them")
	}
	return sharedWidgets, p.namespace(t)
}

// mustCreate creates a widget from its spec in YAML, and fails the test if it is refused.
func (d *definition) mustCreate(t *testing.T, namespace, name, spec string) *unstructured.Unstructured {
	t.Helper()
	o, err := d.in("v1", namespace).Create(t.Context(), d.make(t, "v1", name, spec), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestSchemaRefusesCustomResourceWithFieldPath(t *testing.T) {
	t.Parallel()
	d, ns := widgets(t)
	for _, c := range []struct{ spec, field, message string }{
		{`{size: 0}`, "spec.size", "should be greater than or equal to 1"},
		{`{size: big}`, "spec.size", "must be of type integer"},
		{`{color: red}`, "spec.size", "Required value"},
		{`{size: 1, color: mauve}`, "spec.color", `supported values: "red", "green", "blue"`},
		{`{size: 1, owner: Ann}`, "spec.owner", "should match '^[a-z]+$'"},
		{`{size: 1, ports: [{name: a, number: 1}, {name: b, number: 65536}]}`, "spec.ports[1].number", "should be less than or equal to 65535"},
		{`{size: 1, ports: [{name: a, number: 1}, {name: a, number: 2}]}`, "spec.ports[1]", "Duplicate value"},
	} {
		_, err := d.in("v1", ns).Create(t.Context(), d.make(t, "v1", "wrong", c.spec), metav1.CreateOptions{})
		wantCause(t, err, c.field, c.message)
	}
}

func TestCELRuleRefusesCustomResourceWithFieldPathAndMessage(t *testing.T) {
	t.Parallel()
	d, ns := widgets(t)
	_, err := d.in("v1", ns).Create(t.Context(), d.make(t, "v1", "wrong", `{size: 3, maxSize: 2}`), metav1.CreateOptions{})
	wantCause(t, err, "spec.size", "size must not exceed maxSize")
}

func TestCELTransitionRuleRefusesChangeOfCustomResource(t *testing.T) {
	t.Parallel()
	d, ns := widgets(t)
	o := d.mustCreate(t, ns, "w", `{size: 1, owner: ann}`)
	setField(t, o, "bob", "spec", "owner")
	_, err := d.in("v1", ns).Update(t.Context(), o, metav1.UpdateOptions{})
	wantCause(t, err, "spec.owner", "owner is immutable")
}

// wantCause checks that err has status 422 and that one of its causes concerns the field.
func wantCause(t *testing.T, err error, field, message string) {
	t.Helper()
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsInvalid(err) {
		t.Errorf("not refused as invalid: %v", err)
		return
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Field == field && strings.Contains(cause.Message, message) {
			return
		}
	}
	t.Errorf("no cause with field %q and message %q in: %v", field, message, err)
}

// The controller that finalizes a CRD must receive the event of its own last write before it writes
// again. With upstream's servers, the event usually arrives in time (see
// internal/controlplane/apiserver/ownwrites.go).
func TestDefinitionThatIsDeletedAsSoonAsItIsEstablishedIsGone(t *testing.T) {
	t.Parallel()
	p := startPlane(t, "--profile=api", "--ephemeral")
	client := p.dynamic.Resource(definitions)
	for range 8 {
		var names []string
		for range 5 {
			o := object(t, manifest(t, "things.yaml", values{"GROUP": "g" + rand.String(8) + ".example.com"}))
			if _, err := client.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			names = append(names, o.GetName())
		}
		for _, name := range names {
			eventually(t, name+" is established", func(ctx context.Context) error { return established(ctx, client, name) })
			if err := client.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range names {
			eventually(t, name+" is gone", func(ctx context.Context) error {
				o, err := client.Get(ctx, name, metav1.GetOptions{})
				if err == nil {
					return fmt.Errorf("status: %v", o.Object["status"])
				}
				if apierrors.IsNotFound(err) {
					return nil
				}
				return err
			})
		}
	}
}

func established(ctx context.Context, client dynamic.ResourceInterface, name string) error {
	o, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return nil
		}
	}
	return fmt.Errorf("conditions: %v", conditions)
}

func TestDefaultIsStoredWithCustomResource(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	d, ns := p.define(t, "things.yaml", nil).temporary(t), p.namespace(t)
	d.mustCreate(t, ns, "old", `{}`)

	// After the default in the CRD has changed, an object keeps the earlier default only if that
	// default was stored.
	patch := `[{"op": "replace", "value": "blue", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color/default"}]`
	if _, err := p.dynamic.Resource(definitions).Patch(t.Context(), d.object.GetName(), types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new default is in effect", func(ctx context.Context) error {
		o, err := d.in("v1", ns).Create(ctx, d.make(t, "v1", "new", `{}`), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return errors.Join(err, fieldIs(o, "blue", "spec", "color"))
	})
	o, err := d.in("v1", ns).Get(t.Context(), "old", metav1.GetOptions{})
	if err := errors.Join(err, fieldIs(o, "red", "spec", "color")); err != nil {
		t.Error(err)
	}
}

func TestUnknownFieldsOfCustomResourceArePruned(t *testing.T) {
	t.Parallel()
	d, ns := widgets(t)
	o := d.make(t, "v1", "w", `{size: 1, weight: 7, ports: [{name: a, number: 1, open: true}], notes: {any: kept}}`)
	o, err := d.in("v1", ns).Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationIgnore})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"size":  int64(1),
		"color": "red",
		"ports": []any{map[string]any{"name": "a", "number": int64(1)}},
		"notes": map[string]any{"any": "kept"},
	}
	if diff := cmp.Diff(want, o.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestStrictValidationRefusesUnknownFieldOfCustomResource(t *testing.T) {
	t.Parallel()
	d, ns := widgets(t)
	o := d.make(t, "v1", "wrong", `{size: 1, weight: 7}`)
	_, err := d.in("v1", ns).Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "spec.weight"`) {
		t.Errorf("not refused for the field: %v", err)
	}
}

func TestDefinitionWithWrongSchemaIsRefusedWithFieldPath(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	// If all versions have the same schema, upstream stores it once.
	const root = "spec.validation.openAPIV3Schema"
	for _, c := range []struct{ schema, field, message string }{
		{`{type: object, properties: {spec: {properties: {a: {type: string}}}}}`, root + ".properties[spec].type", "must not be empty for specified object fields"},
		{`{properties: {spec: {type: object}}}`, root + ".type", "must not be empty at the root"},
		{`{type: object, properties: {a: {type: integer, default: one}}}`, root + ".properties[a].default", "must be of type integer"},
		{`{type: object, properties: {a: {type: string, x-kubernetes-validations: [{rule: self > 1}]}}}`, root + ".properties[a].x-kubernetes-validations[0].rule", "found no matching overload"},
		{`{type: object, properties: {a: {type: array, items: {type: object}, x-kubernetes-list-type: map}}}`, root + ".properties[a].x-kubernetes-list-map-keys", "must not be empty"},
	} {
		d := object(t, manifest(t, "things.yaml", values{"GROUP": "wrong.example.com"}))
		versions, _, _ := unstructured.NestedSlice(d.Object, "spec", "versions")
		versions[0].(map[string]any)["schema"] = map[string]any{"openAPIV3Schema": object(t, "kind: none\nschema: "+c.schema).Object["schema"]}
		d.Object["spec"].(map[string]any)["versions"] = versions
		_, err := p.dynamic.Resource(definitions).Create(t.Context(), d, metav1.CreateOptions{})
		wantCause(t, err, c.field, c.message)
	}
}

func TestPrinterColumnsOfCustomResourceAppearInTables(t *testing.T) {
	t.Parallel()
	d, ns := widgets(t)
	d.mustCreate(t, ns, "w", `{size: 4, color: blue}`)
	data, err := d.plane.client.CoreV1().RESTClient().Get().
		AbsPath("/apis", d.group, "v1/namespaces", ns, d.plural).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, column := range table.ColumnDefinitions {
		names = append(names, column.Name)
	}
	if diff := cmp.Diff([]string{"Name", "Color", "Size"}, names); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("%d rows instead of 1", len(table.Rows))
	}
	if diff := cmp.Diff([]any{"w", "blue", int64(4)}, table.Rows[0].Cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}

func TestKubectlGetShowsPrinterColumnsOfCustomResource(t *testing.T) {
	t.Parallel()
	d, ns := widgets(t)
	d.mustCreate(t, ns, "w", `{size: 4, color: blue}`)
	var lines []string
	for line := range strings.Lines(d.plane.kubectl(t, "get", d.plural+"."+d.group, "-n", ns)) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	if diff := cmp.Diff([]string{"NAME COLOR SIZE", "w blue 4"}, lines); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

func TestWriteToCustomResourceLeavesItsStatus(t *testing.T) {
	t.Parallel()
	d, ns := widgets(t)
	o := d.mustCreate(t, ns, "w", "{size: 1}\nstatus: {phase: Made}")
	if _, found := o.Object["status"]; found {
		t.Error("a create wrote the status")
	}
	setField(t, o, "Lost", "status", "phase")
	setField(t, o, int64(2), "spec", "size")
	o, err := d.in("v1", ns).Update(t.Context(), o, metav1.UpdateOptions{})
	if err := errors.Join(err, fieldIs(o, int64(2), "spec", "size")); err != nil {
		t.Fatal(err)
	}
	if _, found := o.Object["status"]; found {
		t.Error("an update wrote the status")
	}
}

func TestWriteToStatusOfCustomResourceLeavesItsSpec(t *testing.T) {
	t.Parallel()
	d, ns := widgets(t)
	o := d.mustCreate(t, ns, "w", `{size: 1}`)
	setField(t, o, "Made", "status", "phase")
	setField(t, o, int64(2), "spec", "size")
	o.SetLabels(map[string]string{"lost": "true"})
	o, err := d.in("v1", ns).UpdateStatus(t.Context(), o, metav1.UpdateOptions{})
	if err := errors.Join(err, fieldIs(o, "Made", "status", "phase"), fieldIs(o, int64(1), "spec", "size")); err != nil {
		t.Fatal(err)
	}
	if len(o.GetLabels()) != 0 {
		t.Errorf("a write to the status set labels: %v", o.GetLabels())
	}
}

func TestGenerationOfCustomResourceRisesWithSpecOnly(t *testing.T) {
	t.Parallel()
	d, ns := widgets(t)
	o := d.mustCreate(t, ns, "w", `{size: 1}`)
	want := func(generation int64, after string) {
		t.Helper()
		if got := o.GetGeneration(); got != generation {
			t.Errorf("after %s the generation is %d instead of %d", after, got, generation)
		}
	}
	want(1, "create")
	var err error
	setField(t, o, "Made", "status", "phase")
	if o, err = d.in("v1", ns).UpdateStatus(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want(1, "a write to the status")
	o.SetLabels(map[string]string{"some": "label"})
	if o, err = d.in("v1", ns).Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want(1, "a write to the labels")
	setField(t, o, int64(2), "spec", "size")
	if o, err = d.in("v1", ns).Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	want(2, "a write to the spec")
}

func TestKubectlScalesCustomResource(t *testing.T) {
	t.Parallel()
	d, ns := widgets(t)
	d.mustCreate(t, ns, "w", `{size: 1, replicas: 2}`)
	d.plane.kubectl(t, "scale", d.plural+"."+d.group+"/w", "-n", ns, "--current-replicas=2", "--replicas=5")
	o, err := d.in("v1", ns).Get(t.Context(), "w", metav1.GetOptions{})
	if err := errors.Join(err, fieldIs(o, int64(5), "spec", "replicas")); err != nil {
		t.Error(err)
	}
}

func TestKubectlExplainsCustomResource(t *testing.T) {
	t.Parallel()
	d, _ := widgets(t)
	// The document that kubectl reads is published some time after the API itself.
	eventually(t, "kubectl explain knows the definition", func(context.Context) error {
		whole, err := d.plane.tryKubectl("", "explain", d.plural, "--api-version="+d.group+"/v1")
		if err != nil || !strings.Contains(whole, "A Widget is what the conformance tests make.") {
			return fmt.Errorf("%v: %s", err, whole)
		}
		return nil
	})
	field := d.plane.kubectl(t, "explain", d.plural+".spec.size", "--api-version="+d.group+"/v1")
	for _, want := range []string{"FIELD: size <integer>", "How large the widget is, in cubits."} {
		if !strings.Contains(field, want) {
			t.Errorf("no %q in:\n%s", want, field)
		}
	}
}

func TestApplyOfCustomResourceConflictNamesOtherManager(t *testing.T) {
	t.Parallel()
	d, ns := widgets(t)
	apply := func(manager, color string, force bool) error {
		o := d.make(t, "v1", "w", "{size: 1, color: "+color+"}")
		_, err := d.in("v1", ns).Apply(t.Context(), "w", o, metav1.ApplyOptions{FieldManager: manager, Force: force})
		return err
	}
	if err := apply("ann", "red", false); err != nil {
		t.Fatal(err)
	}
	err := apply("bob", "blue", false)
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsConflict(err) {
		t.Fatalf("not refused as a conflict: %v", err)
	}
	want := metav1.StatusCause{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "ann"`, Field: ".spec.color"}
	if !slices.Contains(status.ErrStatus.Details.Causes, want) {
		t.Errorf("no cause %v in: %v", want, err)
	}
	if err := apply("bob", "blue", true); err != nil {
		t.Errorf("by force: %v", err)
	}
}

func TestApplyOfCustomResourceMergesListOfTypeMap(t *testing.T) {
	t.Parallel()
	d, ns := widgets(t)
	apply := func(manager, spec string, want ...any) {
		t.Helper()
		o, err := d.in("v1", ns).Apply(t.Context(), "w", d.make(t, "v1", "w", spec), metav1.ApplyOptions{FieldManager: manager})
		if err := errors.Join(err, fieldIs(o, want, "spec", "ports")); err != nil {
			t.Fatalf("%s applied %s: %v", manager, spec, err)
		}
	}
	web := map[string]any{"name": "web", "number": int64(80)}
	tls := map[string]any{"name": "tls", "number": int64(443)}
	apply("ann", `{size: 1, ports: [{name: web, number: 80}]}`, web)
	apply("bob", `{size: 1, ports: [{name: tls, number: 443}]}`, web, tls)
	apply("ann", `{size: 1, ports: []}`, tls)
}

func TestKubectlFindsCustomResourceByShortName(t *testing.T) {
	t.Parallel()
	wantFound(t, "wdg")
}

func TestKubectlFindsCustomResourceByCategory(t *testing.T) {
	t.Parallel()
	wantFound(t, "gadgetry")
}

func wantFound(t *testing.T, name string) {
	t.Helper()
	d, ns := widgets(t)
	d.mustCreate(t, ns, "w", `{size: 1}`)
	want := "widget." + d.group + "/w"
	// Every attempt repeats discovery, because kubectl's cache may be older than the
	// CRD, or come from another plane that had the same port.
	eventually(t, "kubectl get "+name, func(context.Context) error {
		got, err := d.plane.tryKubectl("", "get", name, "-n", ns, "-o", "name", "--cache-dir", t.TempDir())
		if err != nil || strings.TrimSpace(got) != want {
			return fmt.Errorf("%v: %q instead of %q", err, got, want)
		}
		return nil
	})
}

func TestSelectableFieldSelectsCustomResources(t *testing.T) {
	t.Parallel()
	d, ns := widgets(t)
	d.mustCreate(t, ns, "r", `{size: 1, color: red}`)
	d.mustCreate(t, ns, "b", `{size: 1, color: blue}`)
	list, err := d.in("v1", ns).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.color=blue"})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 1 || list.Items[0].GetName() != "b" {
		t.Errorf("selected %v instead of b", list.Items)
	}
	if _, err = d.in("v1", ns).List(t.Context(), metav1.ListOptions{FieldSelector: "spec.size=1"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a field that is not selectable is not refused: %v", err)
	}
}

func TestDeletionOfDefinitionDeletesItsObjects(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	d, ns := p.define(t, "things.yaml", nil).temporary(t), p.namespace(t)
	d.mustCreate(t, ns, "lost", `{}`)
	if err := d.delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.wantGone(t)
	// An object that had been left behind would reappear once the CRD exists again.
	d.create(t)
	list, err := d.in("v1", ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("left behind: %v, %v", list.Items, err)
	}
}

func TestObjectWithFinalizerHoldsItsDefinition(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	d, ns := p.define(t, "things.yaml", nil).temporary(t), p.namespace(t)
	o := d.make(t, "v1", "held", `{}`)
	o.SetFinalizers([]string{"example.com/hold"})
	objects := d.in("v1", ns)
	if _, err := objects.Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := d.delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the object is being deleted", func(ctx context.Context) error {
		o, err := objects.Get(ctx, "held", metav1.GetOptions{})
		if err == nil && o.GetDeletionTimestamp() == nil {
			err = errors.New("it has no deletionTimestamp")
		}
		return err
	})
	never(t, "the definition is held", time.Second, func(ctx context.Context) error {
		_, err := p.dynamic.Resource(definitions).Get(ctx, d.object.GetName(), metav1.GetOptions{})
		return err
	})
	if _, err := objects.Patch(t.Context(), "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	d.wantGone(t)
}

func (d *definition) wantGone(t *testing.T) {
	t.Helper()
	eventually(t, d.object.GetName()+" is gone", func(ctx context.Context) error {
		_, err := d.plane.dynamic.Resource(definitions).Get(ctx, d.object.GetName(), metav1.GetOptions{})
		if err == nil {
			return errors.New("it exists")
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// setField changes one field of an object.
func setField(t *testing.T, o *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

// fieldIs returns an error unless the field of the object has that value.
func fieldIs(o *unstructured.Unstructured, want any, path ...string) error {
	if o == nil {
		return nil // the call that should have returned it reports the reason
	}
	got, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err == nil && !cmp.Equal(want, got) {
		err = fmt.Errorf("%s is %v instead of %v", strings.Join(path, "."), got, want)
	}
	return err
}
