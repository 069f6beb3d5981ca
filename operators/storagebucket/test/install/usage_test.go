package install

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

func TestTheUsageServerReadsSecretsOfTheNamespacesOnly(t *testing.T) {
	for _, tc := range []struct {
		name       string
		in         objects
		namespaces []string
	}{
		{"kustomize", kustomization(t, []string{"default", "usage"}, "namespaced"), []string{"team-a"}},
		{"chart", rendered(t, set("usage.enabled", true, "namespaces", []any{"team-a", "team-b"})), []string{"team-a", "team-b"}},
	} {
		t.Run(tc.name, func(t *testing.T) { checkUsageRights(t, tc.in, tc.namespaces) })
	}
}

// checkUsageRights checks that the usage server may read Secrets only in some
// namespaces, and serves only these namespaces.
func checkUsageRights(t *testing.T, in objects, namespaces []string) {
	t.Helper()
	reads := map[string]bool{}
	for _, o := range in {
		if role, ok := o.(*rbacv1.ClusterRole); ok {
			reads[role.Name] = slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "secrets") })
		}
	}
	var bound []string
	for _, o := range in {
		switch b := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			if reads[b.RoleRef.Name] {
				t.Errorf("%s grants access to the Secrets of all namespaces", b.Name)
			}
		case *rbacv1.RoleBinding:
			if b.RoleRef.Name == "storagebucket-usage" {
				bound = append(bound, b.Namespace)
			}
		}
	}
	slices.Sort(bound)
	if !slices.Equal(bound, namespaces) {
		t.Errorf("the usage server has rights in %q", bound)
	}
	args := get[*appsv1.Deployment](t, in, "storagebucket-usage").Spec.Template.Spec.Containers[0].Args
	if !slices.Contains(args, "--namespaces="+strings.Join(namespaces, ",")) {
		t.Errorf("the usage server is started with %q", args)
	}
}

func TestEveryPodHasANetworkPolicy(t *testing.T) {
	for name, in := range map[string]objects{
		"kustomize": kustomization(t, []string{"default", "usage"}, components...),
		"chart":     rendered(t, everything()),
	} {
		for key, o := range in {
			d, ok := o.(*appsv1.Deployment)
			if !ok {
				continue
			}
			covered := false
			for _, p := range in {
				if policy, ok := p.(*networkingv1.NetworkPolicy); ok {
					covered = covered || selects(policy.Spec.PodSelector.MatchLabels, d.Spec.Template.Labels)
				}
			}
			if !covered {
				t.Errorf("%s: no NetworkPolicy selects the Pods of %s", name, key)
			}
		}
	}
}

func TestImagesHaveAVersionSoThatLoadedOnesAreFound(t *testing.T) {
	for key, o := range kustomization(t, []string{"default", "usage"}) {
		d, ok := o.(*appsv1.Deployment)
		if !ok {
			continue
		}
		image := d.Spec.Template.Spec.Containers[0].Image
		if !strings.Contains(image, ":") || strings.HasSuffix(image, ":latest") {
			t.Errorf("%s: image %s would be pulled each time", key, image)
		}
	}
}
