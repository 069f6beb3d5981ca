package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/e2e/rig"
)

// grantManager creates a service account in the first namespace, and returns a token for
// the account. It grants the account the shipped rights of a manager that watches only the
// given namespaces.
func grantManager(ctx context.Context, namespaces ...string) string {
	GinkgoHelper()
	home := namespaces[0]
	account := newAccount(ctx, home, "manager")
	role := shippedRole(ctx, home+"-manager", "config", "rbac", "role.yaml")
	for _, namespace := range namespaces {
		bind(ctx, namespace, role, account)
	}
	bind(ctx, home, shippedRole(ctx, home+"-leader", "config", "rbac", "leader_election_role.yaml"), account)
	bind(ctx, "", shippedRole(ctx, home+"-reviews", "config", "rbac", "metrics_auth_role.yaml"), account)
	bind(ctx, "", shippedRole(ctx, home+"-cluster-id", "config", "namespaced", "cluster_id.yaml"), account)
	return tokenFor(ctx, account)
}

// grantNotifier creates a service account that may send events, and returns a
// token for it.
func grantNotifier(ctx context.Context, namespace string) string {
	GinkgoHelper()
	account := newAccount(ctx, namespace, "notifier")
	bind(ctx, namespace, shippedRole(ctx, namespace+"-notifier", "config", "rbac", "notifier_role.yaml"), account)
	return tokenFor(ctx, account)
}

func newAccount(ctx context.Context, namespace, name string) *corev1.ServiceAccount {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	create(ctx, account)
	return account
}

func tokenFor(ctx context.Context, account *corev1.ServiceAccount) string {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))}}
	Expect(api.SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}

// shippedRole creates a ClusterRole from the first role in a file, under a separate name, so that
// tests do not share it. A Role becomes a ClusterRole as well, because the binding determines where
// the role applies.
func shippedRole(ctx context.Context, name string, path ...string) *rbacv1.ClusterRole {
	GinkgoHelper()
	content, err := os.ReadFile(rig.FromRoot(path...))
	Expect(err).NotTo(HaveOccurred())
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	for {
		var document rbacv1.ClusterRole
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			Fail("there is no role in " + path[len(path)-1])
		}
		Expect(err).NotTo(HaveOccurred())
		if document.Kind != "ClusterRole" && document.Kind != "Role" {
			continue
		}
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: document.Rules}
		create(ctx, role)
		return role
	}
}

// bind grants the role to the account in a namespace, or in the whole cluster, and waits
// until the API server applies the role.
func bind(ctx context.Context, namespace string, role *rbacv1.ClusterRole, account *corev1.ServiceAccount) {
	GinkgoHelper()
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: account.Namespace, Name: account.Name}}
	if namespace == "" {
		create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: ref, Subjects: subjects})
	} else {
		create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role.Name}, RoleRef: ref, Subjects: subjects,
		})
	}
	awaitAllowed(ctx, namespace, role.Rules[0], account)
}

// awaitAllowed waits until the API server has noticed a newly granted rule, which takes a
// moment. If a client used the right before that, the API server would refuse the request,
// and the manager would cache the refusal.
func awaitAllowed(ctx context.Context, namespace string, rule rbacv1.PolicyRule, account *corev1.ServiceAccount) {
	GinkgoHelper()
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	right := &authorizationv1.ResourceAttributes{
		Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: resource, Subresource: subresource,
	}
	if len(rule.ResourceNames) > 0 {
		right.Name = rule.ResourceNames[0]
	}
	user := "system:serviceaccount:" + account.Namespace + ":" + account.Name
	Eventually(func(g Gomega) {
		review := &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: right},
		}
		g.Expect(api.Create(ctx, review)).To(Succeed())
		g.Expect(review.Status.Allowed).To(BeTrue(), "%s does not have the right that it was granted", user)
	}).Should(Succeed())
}

// create creates an object, and deletes it at the end of the spec.
func create(ctx context.Context, o client.Object) {
	GinkgoHelper()
	Expect(api.Create(ctx, o)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(api.Delete(ctx, o))).To(Succeed()) })
}
