package certificates

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"flag"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

const host = "webhook-service.system.svc"

// cluster is a client of a cluster that has an empty Secret and some configurations.
type cluster struct {
	client.Client
	secret  corev1.Secret
	objects map[string]map[string]any
	patches int
	// before is called before the Secret is written.
	before func()
}

func (c *cluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.Secret:
		c.secret.DeepCopyInto(into)
	case *unstructured.Unstructured:
		object, ok := c.objects[key.Name]
		if !ok {
			return apierrors.NewNotFound(schema.GroupResource{Resource: into.GetKind()}, key.Name)
		}
		into.Object = (&unstructured.Unstructured{Object: object}).DeepCopy().Object
	}
	return nil
}

func (c *cluster) Update(_ context.Context, object client.Object, _ ...client.UpdateOption) error {
	if c.before != nil {
		c.before()
	}
	secret, ok := object.(*corev1.Secret)
	if !ok || secret.ResourceVersion != c.secret.ResourceVersion {
		return apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, object.GetName(), errors.New("it has changed"))
	}
	secret.DeepCopyInto(&c.secret)
	c.secret.ResourceVersion += "1"
	return nil
}

func (c *cluster) Patch(_ context.Context, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return errors.New("an unknown object")
	}
	c.objects[u.GetName()] = u.Object
	c.patches++
	return nil
}

// configuration returns a webhook configuration, and conversion a CRD, which call a Service.
func configuration(service string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": "webhooks"}, "webhooks": []any{
		map[string]any{"clientConfig": calling(service)}, map[string]any{"clientConfig": calling("another-service")},
	}}
}

func conversion(service string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": "crd"}, "spec": map[string]any{"conversion": map[string]any{
		"strategy": "Webhook", "webhook": map[string]any{"clientConfig": calling(service)},
	}}}
}

func calling(service string) map[string]any {
	return map[string]any{"service": map[string]any{"name": service, "namespace": "system", "port": int64(443)}}
}

// newServer returns a server with a cluster, whose time is at.
func newServer(t *testing.T, c *cluster, at *time.Time, w webhook.Options) *server {
	t.Helper()
	var o Options
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	o.Bind(flags)
	if err := flags.Parse([]string{"--webhook-self-signed-secret=system/cert", "--webhook-service=webhook-service",
		"--webhook-configurations=validating/webhooks,conversion/crd"}); err != nil {
		t.Fatal(err)
	}
	s, ok := NewServer(w, o).(*server)
	if !ok {
		t.Fatal("NewServer returned another server")
	}
	if err := s.options.parse(); err != nil {
		t.Fatal(err)
	}
	s.client, s.now = c, func() time.Time { return *at }
	return s
}

// trusted returns the certificates that an object trusts.
func trusted(t *testing.T, object map[string]any) *x509.CertPool {
	t.Helper()
	text, _ := clientConfigs(object)[0]["caBundle"].(string)
	authorities, err := base64.StdEncoding.DecodeString(text)
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(authorities) {
		t.Fatalf("no authorities in %v: %v", object, err)
	}
	return pool
}

func newCluster() *cluster {
	return &cluster{
		secret:  corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "cert"}},
		objects: map[string]map[string]any{"webhooks": configuration("webhook-service"), "crd": conversion("webhook-service")},
	}
}

func TestTheAPIServerTrustsWhatIsServed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	c, now := newCluster(), time.Now()
	s := newServer(t, c, &now, webhook.Options{Host: "127.0.0.1", Port: port})
	s.Register("/validate", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	ready := s.StartedChecker()
	if ready(nil) == nil {
		t.Error("the manager is ready without a certificate")
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	for ticks := time.Tick(10 * time.Millisecond); ready(nil) != nil; {
		select {
		case <-ticks:
		case err := <-ended:
			t.Fatalf("the server ended: %v", err)
		}
	}
	for name, object := range c.objects {
		api := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted(t, object), ServerName: host}}}
		answer, err := api.Get("https://127.0.0.1:" + text + "/validate")
		if err != nil || answer.StatusCode != http.StatusTeapot {
			t.Fatalf("%s: %+v, %v", name, answer, err)
		}
		_ = answer.Body.Close()
		api.CloseIdleConnections()
	}
	if other := clientConfigs(c.objects["webhooks"])[1]; other["caBundle"] != nil {
		t.Errorf("the webhook of another Service was changed: %v", other)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestARenewalInterruptsNothing(t *testing.T) {
	c, now := newCluster(), time.Now()
	s := newServer(t, c, &now, webhook.Options{})
	if err := s.update(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, patches := s.serving.Load(), c.patches
	if err := s.update(t.Context()); err != nil || !s.serving.Load().Leaf.Equal(first.Leaf) || c.patches != patches {
		t.Fatalf("a certificate that is valid was replaced: %d patches, %v", c.patches, err)
	}
	now = now.Add(lifetime - renewal + time.Hour)
	if err := s.update(t.Context()); err != nil {
		t.Fatal(err)
	}
	next, err := parse(c.secret.Data)
	if err != nil || next.pair.Leaf.Equal(first.Leaf) {
		t.Fatalf("there is no new certificate: %v", err)
	}
	if !s.serving.Load().Leaf.Equal(first.Leaf) {
		t.Error("the new certificate is served before the API server can have noticed it")
	}
	for name, leaf := range map[string]*x509.Certificate{"old": first.Leaf, "new": next.pair.Leaf} {
		if _, err := leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: trusted(t, c.objects["crd"]), CurrentTime: now}); err != nil {
			t.Errorf("the %s certificate is not trusted: %v", name, err)
		}
	}
	if err := s.update(t.Context()); err != nil || !s.serving.Load().Leaf.Equal(next.pair.Leaf) {
		t.Errorf("the new certificate is not served: %v", err)
	}
}

func TestTwoManagersServeOneCertificate(t *testing.T) {
	c, now := newCluster(), time.Now()
	one, two := newServer(t, c, &now, webhook.Options{}), newServer(t, c, &now, webhook.Options{})
	c.before = func() {
		c.before = nil
		if err := two.update(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := one.update(t.Context()); !apierrors.IsConflict(err) {
		t.Fatalf("both managers wrote the Secret: %v", err)
	}
	if err := one.update(t.Context()); err != nil || !one.serving.Load().Leaf.Equal(two.serving.Load().Leaf) {
		t.Errorf("two certificates: %v", err)
	}
}

func TestAConfigurationThatComesLaterGetsTheCertificate(t *testing.T) {
	c, now := newCluster(), time.Now()
	delete(c.objects, "webhooks")
	s := newServer(t, c, &now, webhook.Options{})
	if err := s.update(t.Context()); err == nil || !strings.Contains(err.Error(), "ValidatingWebhookConfiguration webhooks does not exist") || s.serving.Load() == nil {
		t.Fatalf("%v", err)
	}
	c.objects["webhooks"] = configuration("webhook-service")
	if err := s.update(t.Context()); err != nil {
		t.Fatal(err)
	}
	trusted(t, c.objects["webhooks"])
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for want, o := range map[string]Options{
		"NAMESPACE/NAME":    {secret: "cert", service: "s", configurations: "validating/a"},
		"--webhook-service": {secret: "system/cert", configurations: "validating/a"},
		"conversion/NAME":   {secret: "system/cert", service: "s", configurations: "validating/a,crd"},
	} {
		if err := o.parse(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
