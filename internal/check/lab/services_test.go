package lab

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const webhookPort = 9443

// converted is a CRD with a conversion webhook. The Service of this webhook does not exist.
const converted = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: parts.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Part, listKind: PartList, plural: parts, singular: part}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: system, name: webhooks, path: /convert}}}
  versions:
  - {name: v2, served: true, storage: true, schema: &schema {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}
  - {name: v1, served: true, storage: false, schema: *schema}
`

// convertAs serves conversions in the place of the instance in a slot: it changes the apiVersion of each
// object, and calls convert. Its certificate is the one that the lab has made for this instance.
func convertAs(t *testing.T, l *Lab, slot int, convert func(*unstructured.Unstructured)) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(l.certDir(slot), "tls.crt"), filepath.Join(l.certDir(slot), "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(l.address(slot).String(), strconv.Itoa(webhookPort)))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			metav1.TypeMeta
			Request struct {
				UID               string                      `json:"uid"`
				DesiredAPIVersion string                      `json:"desiredAPIVersion"`
				Objects           []unstructured.Unstructured `json:"objects"`
			} `json:"request"`
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || r.URL.Path != "/convert" || r.Host != "webhooks.system.svc:443" {
			http.Error(w, "no conversion review", http.StatusBadRequest)
			return
		}
		for i := range review.Request.Objects {
			review.Request.Objects[i].SetAPIVersion(review.Request.DesiredAPIVersion)
			convert(&review.Request.Objects[i])
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "response": map[string]any{
			"uid": review.Request.UID, "convertedObjects": review.Request.Objects, "result": map[string]any{"status": "Success"},
		}})
	}))
	_ = server.Listener.Close()
	server.Listener, server.TLS = listener, &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	t.Cleanup(server.Close)
}

func callsServices(t *testing.T, l *Lab) {
	definition, err := l.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
		Get(t.Context(), "parts.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client, _, _ := unstructured.NestedMap(definition.Object, "spec", "conversion", "webhook", "clientConfig")
	if service, ok := client["service"].(map[string]any); !ok || service["name"] != "webhooks" || client["url"] != nil || client["caBundle"] == nil {
		t.Errorf("the CRD names %v", client)
	}
	if l.address(0) == l.address(next) {
		t.Skip("on this system, all instances have the same address")
	}
	for slot, name := range map[int]string{0: "first", next: "second"} {
		convertAs(t, l, slot, func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{"converted-by": name}) })
	}
	defer l.route(0)
	for slot, want := range map[int]string{0: "first", next: "second"} {
		l.route(slot)
		parts := l.client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "parts"}).Namespace("default")
		part := fromYAML(t, "{apiVersion: example.com/v1, kind: Part, metadata: {namespace: default, name: "+want+"}}")
		if part, err = parts.Create(t.Context(), part, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if got := part.GetAnnotations()["converted-by"]; got != want {
			t.Errorf("with the route to slot %d, %q converts", slot, got)
		}
		if err := parts.Delete(t.Context(), want, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
	if address, ok := l.webhookAddress("default", "other", 443); ok {
		t.Errorf("a Service that no webhook of the installation names leads to %s", address)
	}
}

func TestCertificatesNameTheServicesOfBothVersions(t *testing.T) {
	l := &Lab{}
	l.config.Subject.Install = []unstructured.Unstructured{*fromYAML(t, converted)}
	other := l.config.Subject
	other.Install = []unstructured.Unstructured{*fromYAML(t, strings.ReplaceAll(converted, "name: webhooks", "name: renamed"))}
	l.config.Next = &other
	if got := strings.Join(l.serverNames(), " "); got != "localhost renamed.system.svc webhooks.system.svc" {
		t.Errorf("the names are %s", got)
	}
}
