package contract

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// instruments is a resource with two versions, which use different names for the same
// field.
var instruments = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "instruments"}

func instrumentsCRD() *apiextensionsv1.CustomResourceDefinition {
	version := func(name, field string, storage bool) apiextensionsv1.CustomResourceDefinitionVersion {
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: storage,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object",
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {
					Type:       "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{field: {Type: "integer", Minimum: new(float64(1))}},
				}},
			}},
		}
	}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "instruments.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com",
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "instruments", Singular: "instrument", Kind: "Instrument", ListKind: "InstrumentList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				version("v1", "strings", true),
				version("v2", "stringCount", false),
			},
		},
	}
}

func instrument(name string, strings int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Instrument",
		"metadata": map[string]any{"name": name},
		"spec":     map[string]any{"strings": strings},
	}}
}

func create(t *testing.T, env *envtest.Environment, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	return instrumentsOf(t, env, "v1").Create(t.Context(), object, metav1.CreateOptions{})
}

func instrumentsOf(t *testing.T, env *envtest.Environment, version string) dynamic.ResourceInterface {
	t.Helper()
	c, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	return c.Resource(instruments.GroupResource().WithVersion(version)).Namespace("default")
}

func TestAnInstalledCRDServesAtOnce(t *testing.T) {
	env := start(t, func(env *envtest.Environment) {
		env.CRDs = []*apiextensionsv1.CustomResourceDefinition{instrumentsCRD()}
	})
	if _, err := create(t, env, instrument("lute", 15)); err != nil {
		t.Errorf("the first create: %v", err)
	}
	if _, err := create(t, env, instrument("broken", 0)); !apierrors.IsInvalid(err) {
		t.Errorf("creating what the schema forbids: %v, want it to be invalid", err)
	}
}

// Upstream sleeps for two seconds in the first create after a CRD is installed, because
// other API servers of the cluster may not know the CRD yet. A plane of Koboshi has only
// one API server.
func TestTheFirstCreateAfterACRDDoesNotWait(t *testing.T) {
	oursOnly(t)
	env := start(t)
	for attempt := range 3 { // one slow attempt on a busy machine proves nothing
		crd := instrumentsCRD()
		installed, err := envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := create(t, env, instrument("lute", 15)); err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		if took < 2*time.Second {
			return
		}
		t.Logf("attempt %d: %v", attempt+1, took)
		if err := envtest.UninstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: installed}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the end of the CRD", func(ctx context.Context) error { return undefined(ctx, t, env) })
	}
	t.Error("no first create took less than the two seconds that upstream sleeps")
}

// undefined returns an error while the CRD exists or discovery still lists it. A test that
// installs the CRD again must wait until then, because envtest would mistake the old CRD for
// the new one.
func undefined(ctx context.Context, t *testing.T, env *envtest.Environment) error {
	t.Helper()
	c, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		return err
	}
	crds := apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
	_, stored := c.Resource(crds).Get(ctx, instrumentsCRD().Name, metav1.GetOptions{})
	_, listed := clientset(t, env.Config).Discovery().ServerResourcesForGroupVersion(instruments.GroupVersion().String())
	return errors.Join(wantNotFound(stored), wantNotFound(listed))
}

func TestAdmissionWebhooksAreCalledByURL(t *testing.T) {
	fail, none, path := admissionregistrationv1.Fail, admissionregistrationv1.SideEffectClassNone, "/admit"
	env := start(t, func(env *envtest.Environment) {
		env.CRDs = []*apiextensionsv1.CustomResourceDefinition{instrumentsCRD()}
		env.WebhookInstallOptions.ValidatingWebhooks = []*admissionregistrationv1.ValidatingWebhookConfiguration{{
			ObjectMeta: metav1.ObjectMeta{Name: "instruments"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "no-drums.example.com", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
				// envtest replaces the service with a URL.
				ClientConfig: admissionregistrationv1.WebhookClientConfig{
					Service: &admissionregistrationv1.ServiceReference{Namespace: "default", Name: "webhook", Path: &path},
				},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"example.com"}, APIVersions: []string{"v1"}, Resources: []string{"instruments"}},
				}},
			}},
		}}
	})
	serve(t, env, func(body []byte) (any, error) {
		var review admissionv1.AdmissionReview
		if err := json.Unmarshal(body, &review); err != nil {
			return nil, err
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: review.Request.Name != "drum"}
		if !review.Response.Allowed {
			review.Response.Result = &metav1.Status{Message: "a drum has no strings"}
		}
		return review, nil
	})
	// A configuration takes effect when the server's watch delivers it.
	eventually(t, "the webhook's refusal", func(context.Context) error {
		_, err := create(t, env, instrument("drum", 1))
		switch {
		case err == nil:
			removed := instrumentsOf(t, env, "v1").Delete(t.Context(), "drum", metav1.DeleteOptions{})
			return errors.Join(errors.New("it was admitted"), removed)
		case strings.Contains(err.Error(), "a drum has no strings"):
			return nil
		}
		return err
	})
	if _, err := create(t, env, instrument("lute", 15)); err != nil {
		t.Errorf("what the webhook admits: %v", err)
	}
}

func TestConversionWebhooksAreCalledByURL(t *testing.T) {
	env := start(t, func(env *envtest.Environment) {
		crd := instrumentsCRD()
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook:  &apiextensionsv1.WebhookConversion{ConversionReviewVersions: []string{"v1"}},
		}
		env.CRDs = []*apiextensionsv1.CustomResourceDefinition{crd}
		// envtest would look for the converted types in a scheme, but no scheme has them.
		env.WebhookInstallOptions.IgnoreSchemeConvertible = true
	})
	serve(t, env, convert)
	if _, err := create(t, env, instrument("lute", 15)); err != nil {
		t.Fatal(err)
	}
	got, err := instrumentsOf(t, env, "v2").Get(t.Context(), "lute", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if count, ok, err := unstructured.NestedInt64(got.Object, "spec", "stringCount"); count != 15 || !ok || err != nil {
		t.Errorf("as v2 the lute is %v (%v), want a stringCount of 15", got.Object["spec"], err)
	}
}

// convert answers a ConversionReview by renaming the field.
func convert(body []byte) (any, error) {
	var review apiextensionsv1.ConversionReview
	if err := json.Unmarshal(body, &review); err != nil {
		return nil, err
	}
	names := map[string]string{"example.com/v1": "strings", "example.com/v2": "stringCount"}
	review.Response = &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(raw.Raw); err != nil {
			return nil, err
		}
		count, _, err := unstructured.NestedInt64(object.Object, "spec", names[object.GetAPIVersion()])
		if err != nil {
			return nil, err
		}
		object.SetAPIVersion(review.Request.DesiredAPIVersion)
		object.Object["spec"] = map[string]any{names[review.Request.DesiredAPIVersion]: count}
		converted, err := object.MarshalJSON()
		if err != nil {
			return nil, err
		}
		review.Response.ConvertedObjects = append(review.Response.ConvertedObjects, runtime.RawExtension{Raw: converted})
	}
	return review, nil
}

// serve answers webhook calls at the address that envtest has chosen for them.
func serve(t *testing.T, env *envtest.Environment, answer func([]byte) (any, error)) {
	t.Helper()
	options := env.WebhookInstallOptions
	serveTLS(t, fmt.Sprintf("%s:%d", options.LocalServingHost, options.LocalServingPort), options.LocalServingCertDir,
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reply(w, r, answer) }))
}
