package oncluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// need is a permission that a check needs.
type need struct{ verb, group, resource string }

// needs lists everything that a check does in the cluster.
var needs = []need{
	{"create", "batch", "jobs"}, {"get", "batch", "jobs"}, {"patch", "batch", "jobs"}, {"delete", "batch", "jobs"},
	{"create", "", "configmaps"}, {"list", "", "configmaps"}, {"list", "", "pods"},
	{"create", "", "serviceaccounts"}, {"create", "rbac.authorization.k8s.io", "roles"}, {"create", "rbac.authorization.k8s.io", "rolebindings"},
}

func (n need) String() string {
	resource := n.resource
	if n.group != "" {
		resource += "." + n.group
	}
	return n.verb + " " + resource
}

// preflight returns an error if the cluster does not allow the check. It creates nothing.
func (r *run) preflight(ctx context.Context) error {
	if _, err := r.Client.Discovery().ServerVersion(); err != nil {
		return fmt.Errorf("the cluster does not answer: %w; choose another with --kubeconfig or --context", err)
	}
	if err := r.mayAll(ctx); err != nil {
		return err
	}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for _, object := range []struct {
		kind   string
		create func() error
	}{
		{"ServiceAccount", func() error {
			_, err := r.Client.CoreV1().ServiceAccounts(r.Namespace).Create(ctx, r.account(), dry)
			return err
		}},
		{"Role", func() error { _, err := r.Client.RbacV1().Roles(r.Namespace).Create(ctx, r.role(), dry); return err }},
		{"RoleBinding", func() error {
			_, err := r.Client.RbacV1().RoleBindings(r.Namespace).Create(ctx, r.binding(), dry)
			return err
		}},
		{"ConfigMap", func() error {
			_, err := r.Client.CoreV1().ConfigMaps(r.Namespace).Create(ctx, r.planMap(nil), dry)
			return err
		}},
		{"Job", func() error {
			_, err := r.Client.BatchV1().Jobs(r.Namespace).Create(ctx, r.shardJob(), dry)
			return err
		}},
		{"Pod", func() error { return r.dryPod(ctx, dry) }},
	} {
		if err := object.create(); err != nil {
			return r.refusal(object.kind, err)
		}
	}
	return nil
}

// mayAll asks whether the user has all permissions.
func (r *run) mayAll(ctx context.Context) error {
	var missing []string
	for _, n := range needs {
		may, err := r.may(ctx, n)
		if err != nil {
			return fmt.Errorf("asking the cluster for your permissions: %w", err)
		}
		if !may {
			missing = append(missing, n.String())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("in namespace %s you may not %s; choose another one with --namespace, or ask for these permissions", r.Namespace, strings.Join(missing, ", "))
	}
	return nil
}

func (r *run) may(ctx context.Context, n need) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: r.Namespace, Verb: n.verb, Group: n.group, Resource: n.resource},
	}}
	answer, err := r.Client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}

// dryPod asks whether a Pod of the check would be admitted. The Job controller creates the Pods, so a user who
// may not create any cannot ask, and learns it from the Events of the Job.
func (r *run) dryPod(ctx context.Context, dry metav1.CreateOptions) error {
	may, err := r.may(ctx, need{"create", "", "pods"})
	if err != nil || !may {
		return err
	}
	template := r.shardJob().Spec.Template
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = r.Namespace, r.name
	pod.Spec.ServiceAccountName = "default" // that of the check does not exist yet
	// The labels that the Job controller adds.
	pod.Labels["batch.kubernetes.io/job-name"], pod.Labels["batch.kubernetes.io/controller-uid"] = r.name, "dry-run"
	_, err = r.Client.CoreV1().Pods(r.Namespace).Create(ctx, pod, dry)
	if err != nil && strings.Contains(err.Error(), "error looking up service account") {
		return nil // the account default is only created after the namespace
	}
	return err
}

// refusal explains why an object was refused, and what to do.
func (r *run) refusal(kind string, err error) error {
	text := err.Error()
	action := "correct what it names"
	switch {
	case apierrors.IsNotFound(err):
		action = fmt.Sprintf("create the namespace with kubectl create namespace %s, or choose another one with --namespace", r.Namespace)
	case strings.Contains(text, "exceeded quota"), strings.Contains(text, "failed quota"):
		action = "use less with --shard-cpu and --shard-memory, ask for a larger quota, or choose another namespace with --namespace"
	case strings.Contains(text, "violates PodSecurity"):
		action = "choose another namespace with --namespace"
	case kind == "Role" || kind == "RoleBinding":
		action = "you can grant only permissions that you have, here: create configmaps; ask for it, or choose another namespace with --namespace"
	case apierrors.IsForbidden(err):
		action = "choose another namespace with --namespace, or ask for the permission"
	case errors.Is(err, context.Canceled):
		return err
	}
	return fmt.Errorf("the cluster refuses the %s of the check: %s; %s", kind, text, action)
}
