package install

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

func TestWithoutCertManagerTheCertificatesOfTheChartAreTrustedByWhoCalls(t *testing.T) {
	in := rendered(t, set("usage.enabled", true, "notify.enabled", true, "metrics.serviceMonitor.enabled", true))
	crd := get[*apiextensionsv1.CustomResourceDefinition](t, in, "storagebuckets.storage.koboshi.dev")
	conversion := crd.Spec.Conversion.Webhook.ClientConfig
	api := get[*apiregistrationv1.APIService](t, in, "v1.usage.storage.koboshi.dev").Spec
	notify := get[*corev1.Secret](t, in, "storagebucket-notify-self-signed")
	monitor := get[*monitoringv1.ServiceMonitor](t, in, "storagebucket-controller-manager-metrics-monitor")
	scraper := get[*corev1.Secret](t, in, authorityOfMetrics(t, monitor))
	for _, tc := range []struct {
		secret, service string
		authority       []byte
	}{
		{"storagebucket-webhook-self-signed", conversion.Service.Name, conversion.CABundle},
		{"storagebucket-usage-self-signed", api.Service.Name, api.CABundle},
		{"storagebucket-notify-self-signed", "storagebucket-notify-service", notify.Data["ca.crt"]},
		{"storagebucket-metrics-self-signed", "storagebucket-controller-manager-metrics-service", scraper.Data["ca.crt"]},
	} {
		secret := get[*corev1.Secret](t, in, tc.secret)
		get[*corev1.Service](t, in, tc.service)
		if !bytes.Equal(secret.Data["ca.crt"], tc.authority) {
			t.Errorf("%s: its certificate authority is not trusted", tc.secret)
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

// authorityOfMetrics returns the name of the Secret with the authority that a
// ServiceMonitor trusts.
func authorityOfMetrics(t *testing.T, monitor *monitoringv1.ServiceMonitor) string {
	t.Helper()
	c := monitor.Spec.Endpoints[0].TLSConfig
	if c == nil || c.InsecureSkipVerify != nil || c.CA.Secret == nil || c.CA.Secret.Key != "ca.crt" || c.ServerName == nil {
		t.Fatalf("the ServiceMonitor does not verify the certificate: %+v", c)
	}
	return c.CA.Secret.Name
}

func TestAScraperVerifiesTheCertificateThatTheManagerShows(t *testing.T) {
	for name, in := range map[string]objects{
		"kustomize":          kustomization(t, []string{"default"}, "prometheus"),
		"chart":              rendered(t, set("metrics.serviceMonitor.enabled", true)),
		"chart, certManager": rendered(t, set("metrics.serviceMonitor.enabled", true, "certManager.enabled", true)),
	} {
		t.Run(name, func(t *testing.T) {
			monitor := get[*monitoringv1.ServiceMonitor](t, in, "storagebucket-controller-manager-metrics-monitor")
			secret := authorityOfMetrics(t, monitor)
			service := get[*corev1.Service](t, in, "storagebucket-controller-manager-metrics-service")
			host := service.Name + "." + namespace + ".svc"
			if got := *monitor.Spec.Endpoints[0].TLSConfig.ServerName; got != host {
				t.Errorf("the certificate is verified for %s, the Service is %s", got, host)
			}
			for _, o := range in {
				if c, ok := o.(*certmanagerv1.Certificate); ok && c.Spec.SecretName == secret && !slices.Contains(c.Spec.DNSNames, host) {
					t.Errorf("%s is for %q, not for %s", c.Name, c.Spec.DNSNames, host)
				}
			}
			pod := get[*appsv1.Deployment](t, in, "storagebucket-controller-manager").Spec.Template.Spec
			mounted := ""
			for _, v := range pod.Volumes {
				if v.Secret != nil && v.Secret.SecretName == secret {
					i := slices.IndexFunc(pod.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == v.Name })
					mounted = pod.Containers[0].VolumeMounts[i].MountPath
				}
			}
			if !slices.Contains(pod.Containers[0].Args, "--metrics-cert-dir="+mounted) {
				t.Errorf("the manager mounts the certificate at %q, and is started with %q", mounted, pod.Containers[0].Args)
			}
		})
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
