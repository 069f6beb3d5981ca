// Package install tests that the parts of config/ match each other and the program.
package install

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	root      = "../.."
	config    = root + "/config"
	namespace = "markdownview-system"
)

// objects holds the YAML documents of a kustomization, by kind and name.
type objects map[string][]byte

// built builds a kustomization of config/ with additional components.
func built(t *testing.T, resource string, components ...string) objects {
	t.Helper()
	koboshi := os.Getenv("KOBOSHI")
	if koboshi == "" {
		koboshi = "../../bin/koboshi"
	}
	if !filepath.IsAbs(koboshi) {
		koboshi = filepath.Join(root, koboshi) // relative to the module, as in the Makefile
	}
	if _, err := os.Stat(koboshi); err != nil {
		t.Skipf("there is no koboshi to build a kustomization with (%v): run make in the root of the repository, or set KOBOSHI to its path", err)
	}
	dir := filepath.Join(config, resource)
	if len(components) > 0 {
		dir = onTop(t, resource, components)
	}
	var problems bytes.Buffer
	build := exec.CommandContext(t.Context(), koboshi, "kubectl", "kustomize", dir)
	build.Stderr = &problems
	text, err := build.Output()
	if err != nil || problems.Len() > 0 {
		t.Fatalf("building %s with %v: %v\n%s", resource, components, err, &problems)
	}
	found := objects{}
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var o metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(document), &o); err != nil || o.Kind == "" {
			t.Fatalf("no object (%v):\n%s", err, document)
		}
		key := o.Kind + "/" + o.Name
		if found[key] != nil {
			t.Errorf("%s exists twice", key)
		}
		found[key] = []byte(document)
	}
	return found
}

func onTop(t *testing.T, resource string, components []string) string {
	t.Helper()
	dir := t.TempDir()
	base, err := filepath.Abs(config)
	if err != nil {
		t.Fatal(err)
	}
	if base, err = filepath.Rel(dir, base); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("resources:\n- " + filepath.Join(base, resource) + "\ncomponents:\n")
	for _, c := range components {
		text.WriteString("- " + filepath.Join(base, c) + "\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// get reads an object, and refuses fields that the kind does not have.
func get[T any](t *testing.T, in objects, key string) T {
	t.Helper()
	var o T
	if in[key] == nil {
		t.Fatalf("there is no %s", key)
	}
	if err := yaml.UnmarshalStrict(in[key], &o); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return o
}

func everything(t *testing.T) objects { return built(t, "default", "prometheus", "network-policy") }

func TestEveryKustomizationIsBuilt(t *testing.T) {
	everything(t)
	built(t, "default", "namespaced")
	for _, resource := range []string{"default", "crd", "rbac", "manager", "webhook", "certmanager", "samples"} {
		if len(built(t, resource)) == 0 {
			t.Errorf("%s is empty", resource)
		}
	}
}

func TestTheManagerMayDoWhatItsMarkersSay(t *testing.T) {
	in := everything(t)
	var want rbacv1.ClusterRole
	text, err := os.ReadFile(filepath.Join(config, "rbac", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &want); err != nil {
		t.Fatal(err)
	}
	account := get[appsv1.Deployment](t, in, "Deployment/markdownview-controller-manager").Spec.Template.Spec.ServiceAccountName
	binding := get[rbacv1.ClusterRoleBinding](t, in, "ClusterRoleBinding/markdownview-manager-rolebinding")
	if s := binding.Subjects; len(s) != 1 || s[0].Kind != "ServiceAccount" || s[0].Name != account || s[0].Namespace != namespace {
		t.Errorf("the manager runs as %s, and its rights are for %v", account, s)
	}
	got := get[rbacv1.ClusterRole](t, in, "ClusterRole/"+binding.RoleRef.Name)
	if len(want.Rules) == 0 || len(got.Rules) != len(want.Rules) {
		t.Errorf("%d rules, want %d", len(got.Rules), len(want.Rules))
	}
}

func TestEveryBindingIsOfARoleThatExists(t *testing.T) {
	for name, in := range map[string]objects{"everything": everything(t), "namespaced": built(t, "default", "namespaced")} {
		for key := range in {
			kind, _, _ := strings.Cut(key, "/")
			if !strings.HasSuffix(kind, "RoleBinding") {
				continue
			}
			b := get[rbacv1.RoleBinding](t, in, key)
			if in[b.RoleRef.Kind+"/"+b.RoleRef.Name] == nil {
				t.Errorf("%s: %s refers to %s %s, which does not exist", name, key, b.RoleRef.Kind, b.RoleRef.Name)
			}
			for _, s := range b.Subjects {
				// The account of Prometheus is not part of the installation.
				if s.Namespace == namespace && in[s.Kind+"/"+s.Name] == nil || s.Namespace != namespace && s.Namespace != "monitoring" {
					t.Errorf("%s: %s grants rights to %s/%s, which does not exist", name, key, s.Namespace, s.Name)
				}
			}
		}
	}
}

func TestWithNamespacesTheManagerWatchesThoseThatItHasRightsIn(t *testing.T) {
	in := built(t, "default", "namespaced")
	if in["ClusterRoleBinding/markdownview-manager-rolebinding"] != nil {
		t.Error("the manager has its rights in all namespaces")
	}
	watched := get[rbacv1.RoleBinding](t, in, "RoleBinding/markdownview-manager-rolebinding").Namespace
	args := get[appsv1.Deployment](t, in, "Deployment/markdownview-controller-manager").Spec.Template.Spec.Containers[0].Args
	if want := "--namespaces=" + watched; !slices.Contains(args, want) {
		t.Errorf("no %s in %v", want, args)
	}
}

func TestTheManagerMayHoldItsLease(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "cmd", "manager.go"))
	if err != nil {
		t.Fatal(err)
	}
	role := get[rbacv1.Role](t, everything(t), "Role/markdownview-leader-election-role")
	var names []string
	for _, rule := range role.Rules {
		names = append(names, rule.ResourceNames...)
	}
	if len(names) != 1 || !bytes.Contains(text, []byte(`leaseName = "`+names[0]+`"`)) {
		t.Errorf("the role names %v, which is not the lease of cmd/manager.go", names)
	}
}

func TestTheWebhooksAreAskedWhereTheManagerAnswers(t *testing.T) {
	in := everything(t)
	var clients []admissionv1.WebhookClientConfig
	var from []string
	mutating := get[admissionv1.MutatingWebhookConfiguration](t, in, "MutatingWebhookConfiguration/markdownview-mutating-webhook-configuration")
	for i := range mutating.Webhooks {
		clients = append(clients, mutating.Webhooks[i].ClientConfig)
		from = append(from, mutating.Annotations["cert-manager.io/inject-ca-from"])
	}
	validating := get[admissionv1.ValidatingWebhookConfiguration](t, in, "ValidatingWebhookConfiguration/markdownview-validating-webhook-configuration")
	for i := range validating.Webhooks {
		clients = append(clients, validating.Webhooks[i].ClientConfig)
		from = append(from, validating.Annotations["cert-manager.io/inject-ca-from"])
	}
	if len(clients) != 2 {
		t.Fatalf("there are %d webhooks", len(clients))
	}
	certificate := get[struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			DNSNames   []string          `json:"dnsNames"`
			SecretName string            `json:"secretName"`
			IssuerRef  map[string]string `json:"issuerRef"`
			PrivateKey map[string]string `json:"privateKey"`
		} `json:"spec"`
	}](t, in, "Certificate/markdownview-serving-cert")
	for i, c := range clients {
		get[corev1.Service](t, in, "Service/"+c.Service.Name)
		if want := c.Service.Name + "." + c.Service.Namespace + ".svc"; c.Service.Namespace != namespace || !slices.Contains(certificate.Spec.DNSNames, want) {
			t.Errorf("the certificate is for %v, want %s", certificate.Spec.DNSNames, want)
		}
		if want := certificate.Namespace + "/" + certificate.Name; from[i] != want {
			t.Errorf("the certificate authority is taken from %q, want %s", from[i], want)
		}
	}
	if in["Issuer/"+certificate.Spec.IssuerRef["name"]] == nil {
		t.Errorf("there is no Issuer %s", certificate.Spec.IssuerRef["name"])
	}
	mounted(t, get[appsv1.Deployment](t, in, "Deployment/markdownview-controller-manager"), certificate.Spec.SecretName)
}

// mounted checks that the manager reads its certificate from the directory where the Secret is
// mounted.
func mounted(t *testing.T, d appsv1.Deployment, secret string) {
	t.Helper()
	pod := d.Spec.Template.Spec
	for _, volume := range pod.Volumes {
		if volume.Secret == nil || volume.Secret.SecretName != secret {
			continue
		}
		for _, mount := range pod.Containers[0].VolumeMounts {
			if mount.Name == volume.Name && slices.Contains(pod.Containers[0].Args, "--webhook-cert-dir="+mount.MountPath) {
				return
			}
		}
	}
	t.Errorf("the Secret %s is not mounted where --webhook-cert-dir is", secret)
}

func TestEveryServiceLeadsToAPortOfTheManager(t *testing.T) {
	in := everything(t)
	d := get[appsv1.Deployment](t, in, "Deployment/markdownview-controller-manager")
	services := 0
	for key := range in {
		if !strings.HasPrefix(key, "Service/") {
			continue
		}
		services++
		s := get[corev1.Service](t, in, key)
		for label, value := range s.Spec.Selector {
			if d.Spec.Template.Labels[label] != value {
				t.Errorf("%s selects %s=%s, which the manager does not have", key, label, value)
			}
		}
		target := s.Spec.Ports[0].TargetPort.StrVal
		if !slices.ContainsFunc(d.Spec.Template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == target }) {
			t.Errorf("%s leads to the port %q, which the manager does not have", key, target)
		}
	}
	if services != 2 {
		t.Errorf("there are %d Services, want those of the webhooks and of the metrics", services)
	}
}
