package apiserver

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	"k8s.io/klog/v2"
	schedulingapiv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// bootstrapHooks contains replacements for two hooks of upstream. Upstream's
// hooks wait one second before their first attempt and then write about 140
// objects one after another (storage_rbac.go and storage_scheduling.go of
// v1.37). The replacements reconcile the same objects with the same code,
// immediately and in parallel.
var bootstrapHooks = map[string]genericapiserver.PostStartHookFunc{
	rbacrest.PostStartHookName:       retried(ensurePolicy),
	schedulingrest.PostStartHookName: retried(ensurePriorityClasses),
}

const (
	bootstrapRetry   = 100 * time.Millisecond
	bootstrapTimeout = 30 * time.Second // the same as upstream
	bootstrapWriters = 8
)

func retried(ensure func(context.Context, kubernetes.Interface) error) genericapiserver.PostStartHookFunc {
	return func(hook genericapiserver.PostStartHookContext) error {
		config := rest.CopyConfig(hook.LoopbackClientConfig)
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		var last error
		err = wait.PollUntilContextTimeout(hook, bootstrapRetry, bootstrapTimeout, true, func(ctx context.Context) (bool, error) {
			if last = ensure(ctx, client); last != nil {
				klog.ErrorS(last, "Retrying the bootstrap of the API server")
			}
			return last == nil, nil
		})
		if err != nil && hook.Err() == nil {
			return fmt.Errorf("bootstrap: %w: %w", err, last)
		}
		return nil
	}
}

// ensurePolicy creates or completes the default RBAC policy. Unlike upstream's
// hook, it does not migrate the roles of old releases, because it is used only
// if no other program has written to the store.
func ensurePolicy(_ context.Context, client kubernetes.Interface) error {
	var group errgroup.Group // upstream's reconciliation takes no context
	group.SetLimit(bootstrapWriters)
	role := func(owner reconciliation.RuleOwner, modifier reconciliation.RuleOwnerModifier) {
		group.Go(func() error {
			_, err := (&reconciliation.ReconcileRoleOptions{Role: owner, Client: &newRole{modifier, false}, Confirm: true}).Run()
			return err
		})
	}
	binding := func(b reconciliation.RoleBinding, modifier reconciliation.RoleBindingModifier) {
		group.Go(func() error {
			_, err := (&reconciliation.ReconcileRoleBindingOptions{RoleBinding: b, Client: &newBinding{modifier, false}, Confirm: true}).Run()
			return err
		})
	}
	rbac, namespaces := client.RbacV1(), client.CoreV1().Namespaces()
	for _, r := range append(bootstrappolicy.ClusterRoles(), bootstrappolicy.ControllerRoles()...) {
		role(reconciliation.ClusterRoleRuleOwner{ClusterRole: &r}, reconciliation.ClusterRoleModifier{Client: rbac.ClusterRoles()})
	}
	for _, b := range append(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()...) {
		binding(reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &b}, reconciliation.ClusterRoleBindingClientAdapter{Client: rbac.ClusterRoleBindings()})
	}
	for _, roles := range bootstrappolicy.NamespaceRoles() {
		for _, r := range roles {
			role(reconciliation.RoleRuleOwner{Role: &r}, reconciliation.RoleModifier{Client: rbac, NamespaceClient: namespaces})
		}
	}
	for _, bindings := range bootstrappolicy.NamespaceRoleBindings() {
		for _, b := range bindings {
			binding(reconciliation.RoleBindingAdapter{RoleBinding: &b}, reconciliation.RoleBindingClientAdapter{Client: rbac, NamespaceClient: namespaces})
		}
	}
	return group.Wait()
}

// newRole answers the first read of the role with "not found", which saves a
// request in a new store. If the role exists, its creation fails, and upstream
// reconciles again with a real read.
type newRole struct {
	reconciliation.RuleOwnerModifier
	asked bool
}

func (r *newRole) Get(namespace, name string) (reconciliation.RuleOwner, error) {
	if !r.asked {
		r.asked = true
		return nil, apierrors.NewNotFound(rbacv1.Resource("roles"), name)
	}
	return r.RuleOwnerModifier.Get(namespace, name)
}

// newBinding does for role bindings what newRole does for roles.
type newBinding struct {
	reconciliation.RoleBindingModifier
	asked bool
}

func (b *newBinding) Get(namespace, name string) (reconciliation.RoleBinding, error) {
	if !b.asked {
		b.asked = true
		return nil, apierrors.NewNotFound(rbacv1.Resource("rolebindings"), name)
	}
	return b.RoleBindingModifier.Get(namespace, name)
}

// ensurePriorityClasses creates the missing classes and leaves existing ones
// alone.
func ensurePriorityClasses(ctx context.Context, client kubernetes.Interface) error {
	for _, class := range schedulingapiv1.SystemPriorityClasses() {
		_, err := client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}
