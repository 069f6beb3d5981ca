package certificates

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	group = "cert-manager.io"
	// inject is the annotation with which cert-manager writes the authority of a Certificate into an
	// object.
	inject = group + "/inject-ca-from"

	// defaultFolder is where controller-runtime looks for the certificate of webhooks, and
	// defaultSecret the Secret that kubebuilder mounts there.
	defaultFolder = "/tmp/k8s-webhook-server/serving-certs"
	defaultSecret = "webhook-server-cert"
	folderFlag    = "webhook-cert-path"
)

// folderFlags are the names that managers use for the folder of the certificate.
var folderFlags = []string{folderFlag, "webhook-cert-dir", "cert-dir"}

// certManager adds what config/default of kubebuilder has when all lines for cert-manager are
// uncommented: an Issuer, a Certificate, the annotations that ask for its authority, and the volume.
func certManager(objects []unstructured.Unstructured, w *webhooks, m Manager) ([]unstructured.Unstructured, error) {
	if w.argument(secretFlag) != "" {
		return nil, fmt.Errorf("config/default already makes the manager create its certificates; remove --%s from its arguments, or omit --certificates", secretFlag)
	}
	certificate := w.certificate(objects)
	if certificate == nil {
		added := w.newCertificate(w.mount(m))
		objects = append(objects, added...)
		certificate = &added[1]
	}
	for _, c := range w.callers {
		annotations := c.object.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[inject] = certificate.GetNamespace() + "/" + certificate.GetName()
		c.object.SetAnnotations(annotations)
	}
	return objects, nil
}

// certificate returns the Certificate of the webhooks' Service, or nil.
func (w *webhooks) certificate(objects []unstructured.Unstructured) *unstructured.Unstructured {
	for i, o := range objects {
		if o.GroupVersionKind().Group != group || o.GetKind() != "Certificate" || o.GetNamespace() != w.service.GetNamespace() {
			continue
		}
		names, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "dnsNames")
		for _, name := range names {
			if name == w.host() {
				return &objects[i]
			}
		}
	}
	return nil
}

// host returns the name by which the API server calls the webhooks.
func (w *webhooks) host() string {
	return w.service.GetName() + "." + w.service.GetNamespace() + ".svc"
}

// newCertificate returns an Issuer and a Certificate whose Secret has the given name. Their names
// are those that kubebuilder gives them, if the Service has its name from kubebuilder.
func (w *webhooks) newCertificate(secret string) []unstructured.Unstructured {
	prefix, ok := strings.CutSuffix(w.service.GetName(), "webhook-service")
	if !ok {
		prefix = w.service.GetName() + "-"
	}
	issuer := prefix + "selfsigned-issuer"
	return []unstructured.Unstructured{
		w.newObject(group+"/v1", "Issuer", issuer, map[string]any{"spec": map[string]any{"selfSigned": map[string]any{}}}),
		w.newObject(group+"/v1", "Certificate", prefix+"serving-cert", map[string]any{"spec": map[string]any{
			"dnsNames":   []any{w.host(), w.host() + ".cluster.local"},
			"issuerRef":  map[string]any{"kind": "Issuer", "name": issuer},
			"secretName": secret,
		}}),
	}
}

// mount gives the manager the Secret with the certificate, and returns its name.
func (w *webhooks) mount(m Manager) string {
	folder := w.argument(folderFlags...)
	if folder == "" {
		folder = defaultFolder
		if m.HasFlag(folderFlag) {
			w.addArgument(folderFlag, folder)
		}
	}
	if secret := w.mounted(folder); secret != "" {
		return secret
	}
	const volume = "webhook-certs"
	mounts, _ := w.container["volumeMounts"].([]any)
	w.container["volumeMounts"] = append(mounts, map[string]any{"name": volume, "mountPath": folder, "readOnly": true})
	volumes, _ := w.pod["volumes"].([]any)
	w.pod["volumes"] = append(volumes, map[string]any{"name": volume, "secret": map[string]any{"secretName": defaultSecret}})
	return defaultSecret
}

// mounted returns the name of the Secret in a folder of the manager, or "".
func (w *webhooks) mounted(folder string) string {
	for _, mount := range maps(w.container["volumeMounts"]) {
		for _, volume := range maps(w.pod["volumes"]) {
			if mount["mountPath"] == folder && mount["name"] == volume["name"] {
				name, _, _ := unstructured.NestedString(volume, "secret", "secretName")
				return name
			}
		}
	}
	return ""
}
