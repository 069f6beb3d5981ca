package chart

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	certManagerGroup = "cert-manager.io"
	injectAnnotation = "cert-manager.io/inject-ca-from"
	byCertManager    = `eq .Values.certificates.mode "cert-manager"`
	bySecret         = `eq .Values.certificates.mode "secret"`
)

// certificateModes are the values of certificates.mode. If the objects have certificates of another
// kind than cert-manager's, there is nothing to choose, and the chart has them as they are.
var certificateModes = []any{"cert-manager", "secret"}

// addCertificates adds the choice between cert-manager and Secrets of the person.
func (b *builder) addCertificates() error {
	secrets := b.issued()
	if len(secrets) == 0 {
		return nil
	}
	b.values.add("certificates.mode", "cert-manager: cert-manager, which must be in the cluster, issues the certificates. secret: you have created these Secrets in the namespace of the release, with the keys tls.crt, tls.key and ca.crt: "+strings.Join(secrets, ", ")+".",
		"cert-manager", oneOf(certificateModes...))
	for _, t := range b.templates {
		if t.is(certManagerGroup, "") {
			t.only(byCertManager)
		}
	}
	trusting := false
	for _, t := range b.templates {
		found, err := b.trust(t)
		if err != nil {
			return err
		}
		trusting = trusting || found
	}
	if trusting {
		b.values.add("certificates.caBundle", "With the mode secret: the certificate authority of the webhooks, in PEM and then base64.", "", matching("^[A-Za-z0-9+/=]*$"))
	}
	return nil
}

// issued returns the names of the Secrets that cert-manager makes, for people.
func (b *builder) issued() (secrets []string) {
	for _, t := range b.find(certManagerGroup, "Certificate") {
		name, _, _ := unstructured.NestedString(t.object.Object, "spec", "secretName")
		secrets = append(secrets, b.readable(name))
	}
	slices.Sort(secrets)
	return slices.Compact(secrets)
}

// trust lets the API server trust the webhooks of an object: cert-manager writes the authority into
// it, or the values have it.
func (b *builder) trust(t *template) (bool, error) {
	meta := inner(t.object.Object, "metadata")
	annotations := inner(meta, "annotations")
	if annotations[injectAnnotation] == nil {
		return false, nil
	}
	for _, config := range clientConfigs(t.object.Object) {
		delete(config, "caBundle")
		b.field(config, guarded(bySecret, `caBundle: {{ required "certificates.caBundle is needed if certificates.mode is secret" .Values.certificates.caBundle }}`))
	}
	if len(annotations) == 1 { // without it, there would be an empty field
		return true, b.fieldIf(byCertManager, meta, "annotations")
	}
	return true, b.fieldIf(byCertManager, annotations, injectAnnotation)
}

// clientConfigs returns the parts of an object that say how the API server calls a server: those of
// webhooks, and the spec of an APIService.
func clientConfigs(part any) (found []map[string]any) {
	switch part := part.(type) {
	case []any:
		for _, item := range part {
			found = append(found, clientConfigs(item)...)
		}
	case map[string]any:
		if part["kind"] == apiServiceKind.Kind {
			return []map[string]any{inner(part, "spec")}
		}
		for name, item := range part {
			config, ok := item.(map[string]any)
			switch {
			case name == "clientConfig" && ok && config["service"] != nil:
				found = append(found, config)
			case name != "openAPIV3Schema":
				found = append(found, clientConfigs(item)...)
			}
		}
	}
	return found
}
