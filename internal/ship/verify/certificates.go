package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/pki"
	"github.com/koboshi-dev/koboshi/internal/served"
)

const (
	certManager = "cert-manager.io"
	// injectFrom is the annotation with which an object asks cert-manager for the authority of a
	// Certificate, as NAMESPACE/NAME.
	injectFrom = certManager + "/inject-ca-from"
	// issueEvery is the interval at which new Certificates are noticed.
	issueEvery = 200 * time.Millisecond
)

// kinds are those kinds of cert-manager that operators install, with their resources.
var kinds = map[string]string{"Certificate": "certificates", "Issuer": "issuers"}

// certificates does for Certificates what cert-manager would do, which a plane does not have: it stores a key
// and a certificate in the Secret, and the authority where an object asks for it.
type certificates struct {
	cluster   *cluster.Cluster
	authority *pki.Authority
}

// issueCertificates begins to issue certificates, if a manifest has any for cert-manager, until ctx ends.
func (v *verification) issueCertificates(ctx context.Context) error {
	manifest := v.Manifest
	if v.Old != nil {
		manifest = slices.Concat(manifest, v.Old.Manifest)
	}
	ofCertManager := func(u unstructured.Unstructured) bool { return u.GroupVersionKind().Group == certManager }
	if !slices.ContainsFunc(manifest, ofCertManager) {
		return nil
	}
	authority, err := pki.New("koboshi in place of cert-manager")
	if err != nil {
		return err
	}
	c := &certificates{v.cluster, authority}
	if err := c.define(ctx); err != nil {
		return err
	}
	v.Observer.Note("the plane has no cert-manager, so Koboshi issues the certificates in its place")
	go func() {
		_ = wait.PollUntilContextCancel(ctx, issueEvery, true, func(ctx context.Context) (bool, error) {
			c.issueAll(ctx)
			return false, nil
		})
	}()
	return nil
}

// define creates the CRDs. They accept any object, because the plane is not there to check cert-manager.
func (c *certificates) define(ctx context.Context) error {
	var crds []*unstructured.Unstructured
	for kind, plural := range kinds {
		crd := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": plural + "." + certManager},
			"spec": map[string]any{
				"group": certManager, "scope": "Namespaced",
				"names": map[string]any{"kind": kind, "plural": plural, "singular": strings.ToLower(kind), "listKind": kind + "List"},
				"versions": []any{map[string]any{
					"name": "v1", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
				}},
			},
		}}
		created, err := c.cluster.Apply(ctx, crd, cluster.Apply{})
		if err != nil {
			return err
		}
		crds = append(crds, created)
	}
	return served.Wait(ctx, c.cluster.Dynamic, c.cluster.Mapper, crds)
}

// issueAll issues what is missing. What fails is tried again at the next call; a certificate that never comes
// is seen as a Pod that does not start.
func (c *certificates) issueAll(ctx context.Context) {
	list, err := c.cluster.Dynamic.Resource(schema.GroupVersionResource{Group: certManager, Version: "v1", Resource: "certificates"}).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range list.Items {
		_ = c.issue(ctx, &list.Items[i])
	}
	for _, resource := range []schema.GroupVersionResource{
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
		{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
	} {
		objects, err := c.cluster.Dynamic.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		for i := range objects.Items {
			u := &objects.Items[i]
			if u.GetAnnotations()[injectFrom] != "" && trust(u, c.authority.CertPEM()) {
				_, _ = c.cluster.Dynamic.Resource(resource).Update(ctx, u, metav1.UpdateOptions{FieldManager: "cert-manager-cainjector"})
			}
		}
	}
}

// issue stores a certificate in the Secret that a Certificate names, and says so in its status.
func (c *certificates) issue(ctx context.Context, certificate *unstructured.Unstructured) error {
	name, _, _ := unstructured.NestedString(certificate.Object, "spec", "secretName")
	hosts, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	secrets := c.cluster.Dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(certificate.GetNamespace())
	if _, err := secrets.Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		return err
	}
	cert, key, err := c.authority.Issue(pki.Request{CommonName: certificate.GetName(), Names: hosts, Server: true})
	if err != nil {
		return err
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
		"metadata":   map[string]any{"name": name},
		"stringData": map[string]any{"tls.crt": string(cert), "tls.key": string(key), "ca.crt": string(c.authority.CertPEM())},
	}}
	if _, err := secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: "cert-manager-certificates-issuing"}); err != nil {
		return fmt.Errorf("storing the certificate %s: %w", certificate.GetName(), err)
	}
	condition := map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339)}
	certificate.Object["status"] = map[string]any{"conditions": []any{condition}}
	at, err := c.cluster.At(certificate)
	if err != nil {
		return err
	}
	_, err = at.UpdateStatus(ctx, certificate, metav1.UpdateOptions{})
	return err
}
