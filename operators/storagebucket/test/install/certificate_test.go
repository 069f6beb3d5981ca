package install

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

func TestWithoutCertManagerTheCertificatesOfTheChartAreTrustedByWhoCalls(t *testing.T) {
	in := rendered(t, set("usage.enabled", true, "notify.enabled", true))
	crd := get[*apiextensionsv1.CustomResourceDefinition](t, in, "storagebuckets.storage.koboshi.dev")
	conversion := crd.Spec.Conversion.Webhook.ClientConfig
	api := get[*apiregistrationv1.APIService](t, in, "v1.usage.storage.koboshi.dev").Spec
	notify := get[*corev1.Secret](t, in, "storagebucket-notify-self-signed")
	for _, tc := range []struct {
		secret, service string
		authority       []byte
	}{
		{"storagebucket-webhook-self-signed", conversion.Service.Name, conversion.CABundle},
		{"storagebucket-usage-self-signed", api.Service.Name, api.CABundle},
		{"storagebucket-notify-self-signed", "storagebucket-notify-service", notify.Data["ca.crt"]},
	} {
		secret := get[*corev1.Secret](t, in, tc.secret)
		get[*corev1.Service](t, in, tc.service)
		if !bytes.Equal(secret.Data["ca.crt"], tc.authority) {
			t.Errorf("%s: its authority is not the one that is trusted", tc.secret)
		}
		pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
		if err != nil {
			t.Fatalf("%s: %v", tc.secret, err)
		}
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(tc.authority)
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: tc.service + "." + namespace + ".svc"}); err != nil {
			t.Errorf("%s: %v", tc.secret, err)
		}
	}
}

func TestTheCRDsOfAReleaseStayWhenItGoesUnlessToldOtherwise(t *testing.T) {
	for name, tc := range map[string]struct {
		values map[string]any
		keep   bool
	}{
		"by default":      {nil, true},
		"crds.keep=false": {set("crds.keep", false), false},
	} {
		in := rendered(t, tc.values)
		for _, crd := range []string{"storagebuckets.storage.koboshi.dev", "objectstores.storage.koboshi.dev"} {
			annotations := get[*apiextensionsv1.CustomResourceDefinition](t, in, crd).Annotations
			if kept := annotations["helm.sh/resource-policy"] == "keep"; kept != tc.keep {
				t.Errorf("%s: %s is kept: %v", name, crd, kept)
			}
		}
	}
}
