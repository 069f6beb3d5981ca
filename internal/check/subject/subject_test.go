package subject_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

func TestExpandPutsValuesInAndLeavesTheSubjectAlone(t *testing.T) {
	before := subject.Subject{
		Command: []string{"/manager", "--kubeconfig=$(KUBECONFIG)", "--name=$(OTHER)"},
		Env:     []string{"TMPDIR=$(CERTS)"}, Election: []string{"--leader-elect"},
		Webhook: subject.Webhook{CertDir: "$(CERTS)/x", Args: []string{"--webhook-cert-path=$(CERTS)/x"}},
	}
	after := before.Expand(map[string]string{subject.Certs: "/certs", subject.Kubeconfig: "/kubeconfig"})
	want := subject.Subject{
		Command: []string{"/manager", "--kubeconfig=/kubeconfig", "--name=$(OTHER)"},
		Env:     []string{"TMPDIR=/certs"}, Election: []string{"--leader-elect"},
		Webhook: subject.Webhook{CertDir: "/certs/x", Args: []string{"--webhook-cert-path=/certs/x"}},
	}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if before.Command[1] != "--kubeconfig=$(KUBECONFIG)" {
		t.Errorf("the subject itself was changed: %q", before.Command)
	}
}

func TestAServerWithTheCertificatesIsTrustedAtItsAddresses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "for it")
	ca, err := subject.Certificates(dir, []net.IP{net.IPv4(127, 0, 0, 1)}, []string{"webhook.system.svc"})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	for name, good := range map[string]bool{"127.0.0.1": true, "webhook.system.svc": true, "127.0.0.2": false, "elsewhere": false} {
		conn, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{RootCAs: roots, ServerName: name})
		if (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "tls.key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key can be read by others: %v %v", info.Mode(), err)
	}
}

func TestWebhooksAreLedFromServicesToTheController(t *testing.T) {
	service := func(path string) map[string]any {
		service := map[string]any{"name": "webhook-service", "namespace": "system"}
		if path != "" {
			service["path"] = path
		}
		return map[string]any{"service": service}
	}
	configuration := func(clients ...any) unstructured.Unstructured {
		var webhooks []any
		for _, client := range clients {
			webhooks = append(webhooks, map[string]any{"clientConfig": client})
		}
		return unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "webhooks": webhooks,
		}}
	}
	definition := func(client any) unstructured.Unstructured {
		return unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"spec": map[string]any{"conversion": map[string]any{"webhook": map[string]any{"clientConfig": client}}},
		}}
	}
	url := func(url string) map[string]any {
		return map[string]any{"url": url, "caBundle": base64.StdEncoding.EncodeToString([]byte("authority"))}
	}
	elsewhere := map[string]any{"url": "https://elsewhere.example/mutate"}
	other := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "webhooks": []any{map[string]any{"clientConfig": service("")}}}}

	given := []unstructured.Unstructured{
		configuration(service("/mutate"), elsewhere, service("")), definition(service("/convert")), other,
		configuration("no object"), definition(nil),
	}
	var before []unstructured.Unstructured
	for _, o := range given {
		before = append(before, *o.DeepCopy())
	}
	got := subject.PointWebhooks(given, "https://127.0.3.7:9443", []byte("authority"))
	want := []unstructured.Unstructured{
		configuration(url("https://127.0.3.7:9443/mutate"), elsewhere, url("https://127.0.3.7:9443/")),
		definition(url("https://127.0.3.7:9443/convert")), other,
		configuration("no object"), definition(nil),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(before, given); diff != "" {
		t.Errorf("the arguments were changed:\n%s", diff)
	}
	for i, want := range []bool{true, true, false, false, false} {
		if got := subject.NamesService(given[i]); got != want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

func TestWebhooksThatAreTrustedKeepTheirServices(t *testing.T) {
	webhooks := func(clients ...any) unstructured.Unstructured {
		var all []any
		for _, client := range clients {
			all = append(all, map[string]any{"clientConfig": client})
		}
		return unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "webhooks": all,
		}}
	}
	service := func(name string) map[string]any {
		return map[string]any{"service": map[string]any{"name": name, "namespace": "system", "path": "/check"}}
	}
	trusted := func(name string) map[string]any {
		client := service(name)
		client["caBundle"] = base64.StdEncoding.EncodeToString([]byte("authority"))
		return client
	}
	elsewhere := map[string]any{"url": "https://elsewhere.example/mutate"}
	given := []unstructured.Unstructured{webhooks(service("one"), elsewhere), webhooks(service("two"), service("one"))}
	want := []unstructured.Unstructured{webhooks(trusted("one"), elsewhere), webhooks(trusted("two"), trusted("one"))}
	if diff := cmp.Diff(want, subject.TrustWebhooks(given, []byte("authority"))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(webhooks(service("one"), elsewhere), given[0]); diff != "" {
		t.Errorf("the arguments were changed:\n%s", diff)
	}
	s := subject.Subject{Install: given[:1], Webhooks: given[1:]}
	if diff := cmp.Diff([]types.NamespacedName{{Namespace: "system", Name: "one"}, {Namespace: "system", Name: "two"}}, s.Services()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
