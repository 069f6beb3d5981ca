package install

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestKustomizeAndTheChartInstallTheSame(t *testing.T) {
	for _, tc := range []struct {
		name      string
		kustomize objects
		chart     objects
	}{
		{
			"the defaults",
			kustomization(t, []string{"default"}),
			rendered(t, set("certManager.enabled", true)),
		},
		{
			"everything",
			kustomization(t, []string{"default", "usage"}, components...),
			rendered(t, everything()),
		},
		{
			"one namespace",
			kustomization(t, []string{"default"}, "namespaced"),
			rendered(t, set("certManager.enabled", true, "namespaces", []any{"team-a"})),
		},
		{
			"one namespace, with the usage server",
			kustomization(t, []string{"default", "usage"}, "namespaced"),
			rendered(t, set("certManager.enabled", true, "usage.enabled", true, "namespaces", []any{"team-a"})),
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.chart = installed(tc.chart)
			// With Helm, a command-line flag creates the namespace. The usage server has
			// its own issuer only in config/usage, which can be installed separately.
			delete(tc.kustomize, "Namespace/"+namespace)
			delete(tc.kustomize, "Issuer/storagebucket-usage")
			if diff := cmp.Diff(slices.Sorted(maps.Keys(tc.kustomize)), slices.Sorted(maps.Keys(tc.chart))); diff != "" {
				t.Fatalf("the objects differ (-kustomize +chart):\n%s", diff)
			}
			for key := range tc.kustomize {
				if diff := cmp.Diff(essence(t, tc.kustomize[key]), essence(t, tc.chart[key])); diff != "" {
					t.Errorf("%s (-kustomize +chart):\n%.4000s", key, diff)
				}
			}
		})
	}
}

// essence returns an object without the parts that may differ between the two ways of
// installing: the image, the names of the Secrets with certificates, and all labels except
// those that grant something.
func essence(t *testing.T, object client.Object) map[string]any {
	object = object.DeepCopyObject().(client.Object)
	switch o := object.(type) {
	case *appsv1.Deployment:
		dropInstance(o)
	case *certmanagerv1.Certificate:
		o.Spec.SecretName = ""
		o.Spec.IssuerRef.Name = strings.Replace(o.Spec.IssuerRef.Name, "-usage", "-selfsigned-issuer", 1)
	case *monitoringv1.ServiceMonitor:
		o.Spec.Endpoints[0].Interval = ""
		o.Spec.Endpoints[0].TLSConfig.CA.Secret.Name = ""
	}
	u := generic(t, object)
	kept := map[string]string{}
	for key, value := range u.GetLabels() {
		if strings.HasPrefix(key, "rbac.authorization.k8s.io/") {
			kept[key] = value
		}
	}
	u.SetLabels(kept)
	annotations := u.GetAnnotations()
	delete(annotations, "helm.sh/resource-policy")
	u.SetAnnotations(annotations)
	for _, path := range [][]string{{"spec", "selector"}, {"spec", "podSelector", "matchLabels"}, {"spec", "selector", "matchLabels"}} {
		if selector, ok, err := unstructured.NestedMap(u.Object, path...); ok && err == nil {
			delete(selector, "app.kubernetes.io/instance")
			if err := unstructured.SetNestedMap(u.Object, selector, path...); err != nil {
				t.Fatal(err)
			}
		}
	}
	return u.Object
}

func dropInstance(d *appsv1.Deployment) {
	spec := &d.Spec.Template.Spec
	delete(d.Spec.Template.Labels, "app.kubernetes.io/instance")
	for i := range spec.TopologySpreadConstraints {
		delete(spec.TopologySpreadConstraints[i].LabelSelector.MatchLabels, "app.kubernetes.io/instance")
	}
	for i := range spec.Containers {
		spec.Containers[i].Image, spec.Containers[i].ImagePullPolicy = "", ""
	}
	for i := range spec.Volumes {
		if strings.HasSuffix(spec.Volumes[i].Name, "-cert") || spec.Volumes[i].Name == "tls" {
			spec.Volumes[i].Secret.SecretName = ""
		}
	}
}

func TestTheFilesOfTheChartAreThoseOfConfig(t *testing.T) {
	want := t.TempDir()
	script, err := filepath.Abs(root + "/hack/chart-files.sh")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(script, want).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if diff := cmp.Diff(files(t, want), files(t, chartDir+"/files")); diff != "" {
		t.Errorf("run hack/chart-files.sh (-config +chart):\n%.4000s", diff)
	}
}

// files returns the contents of a folder by path.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	contents := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		relative, _ := filepath.Rel(dir, path)
		contents[relative] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return contents
}

func TestWithNamespacesThereAreNoRightsInOthers(t *testing.T) {
	for _, tc := range []struct {
		name    string
		objects objects
	}{
		{"kustomize", kustomization(t, []string{"default"}, "namespaced")},
		{"kustomize with the usage server", kustomization(t, []string{"default", "usage"}, "namespaced")},
		{"chart", rendered(t, set("namespaces", []any{"team-a", "team-b"}))},
		{"chart with a cluster ID", rendered(t, set("namespaces", []any{"team-a"}, "clusterID", "blue"))},
	} {
		// The only cluster-wide rights that the operator needs are the rights to authorize the
		// clients that read the metrics or the usage, and to read the ID of the cluster.
		may := map[string]bool{
			"storagebucket-metrics-auth-role": true, "storagebucket-cluster-id-reader": true, "storagebucket-usage-auth": true,
		}
		bound := 0
		for key, object := range tc.objects {
			switch b := object.(type) {
			case *rbacv1.ClusterRoleBinding:
				if !may[b.RoleRef.Name] {
					t.Errorf("%s: %s grants %s in all namespaces", tc.name, key, b.RoleRef.Name)
				}
			case *rbacv1.RoleBinding:
				if b.RoleRef.Name == "storagebucket-manager-role" {
					bound++
				}
			}
		}
		if bound == 0 {
			t.Errorf("%s: the manager has no rights in the namespaces it watches", tc.name)
		}
	}
}

func TestEveryBindingIsOfAnExistingRoleToAnExistingAccount(t *testing.T) {
	for name, in := range map[string]objects{
		"kustomize": kustomization(t, []string{"default", "usage"}, components...),
		"chart":     rendered(t, allFlags()),
	} {
		for key, object := range in {
			var ref rbacv1.RoleRef
			var subjects []rbacv1.Subject
			switch b := object.(type) {
			case *rbacv1.ClusterRoleBinding:
				ref, subjects = b.RoleRef, b.Subjects
			case *rbacv1.RoleBinding:
				ref, subjects = b.RoleRef, b.Subjects
			default:
				continue
			}
			// Every cluster has the role extension-apiserver-authentication-reader.
			if in[ref.Kind+"/"+ref.Name] == nil && ref.Name != "extension-apiserver-authentication-reader" {
				t.Errorf("%s: %s refers to %s %s, which is not installed", name, key, ref.Kind, ref.Name)
			}
			for _, s := range subjects {
				if in[s.Kind+"/"+s.Name] == nil || s.Namespace != namespace {
					t.Errorf("%s: %s is for %s %s/%s, which is not installed", name, key, s.Kind, s.Namespace, s.Name)
				}
			}
		}
	}
}

func TestEveryServiceReachesAPortOfItsPods(t *testing.T) {
	for name, in := range map[string]objects{
		"kustomize": kustomization(t, []string{"default", "usage"}, components...),
		"chart":     rendered(t, everything()),
	} {
		for key, object := range in {
			service, ok := object.(*corev1.Service)
			if !ok {
				continue
			}
			pods := 0
			for _, o := range in {
				if d, ok := o.(*appsv1.Deployment); ok && selects(service.Spec.Selector, d.Spec.Template.Labels) {
					pods++
					if !hasPort(d, service.Spec.Ports[0].TargetPort.StrVal) {
						t.Errorf("%s: %s goes to port %s, which %s does not have", name, key, service.Spec.Ports[0].TargetPort.StrVal, d.Name)
					}
				}
			}
			if pods != 1 {
				t.Errorf("%s: %s selects %d deployments", name, key, pods)
			}
		}
	}
}

func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func hasPort(d *appsv1.Deployment, name string) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Ports,
		func(p corev1.ContainerPort) bool { return p.Name == name })
}
