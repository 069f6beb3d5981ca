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

// Upstream's hooks wait one second before their first attempt and then write
// about 140 objects one after the other (storage_rbac.go and
// storage_scheduling.go of v1.37). These reconcile the same objects by the
// same code, at once and side by side.
var bootstrapHooks = map[string]genericapiserver.PostStartHookFunc{
	rbacrest.PostStartHookName:       retried(ensurePolicy),
	schedulingrest.PostStartHookName: retried(ensurePriorityClasses),
}

const (
	bootstrapRetry   = 100 * time.Millisecond
	bootstrapTimeout = 30 * time.Second // as upstream
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
				klog.ErrorS(last, "Bootstrap of the API server is retried")
			}
			return last == nil, nil
		})
		if err != nil && hook.Err() == nil {
			return fmt.Errorf("bootstrap: %w: %w", err, last)
		}
		return nil
	}
}

// ensurePolicy creates or completes the default RBAC policy. A store that only
// this program wrote to cannot hold roles of the releases that upstream's hook
// migrates from, so there are only objects to reconcile. In a new store there is
// nothing to read first.
func ensurePolicy(_ context.Context, client kubernetes.Interface) error {
	var group errgroup.Group // upstream's reconciliation takes no context
	group.SetLimit(bootstrapWriters)
	role := func(owner reconciliation.RuleOwner, modifier reconciliation.RuleOwnerModifier) {
		group.Go(func() error {
			return createdFirst(func(absent bool) error {
				_, err := (&reconciliation.ReconcileRoleOptions{Role: owner, Client: roleModifier{modifier, absent}, Confirm: true}).Run()
				return err
			})
		})
	}
	binding := func(b reconciliation.RoleBinding, modifier reconciliation.RoleBindingModifier) {
		group.Go(func() error {
			return createdFirst(func(absent bool) error {
				_, err := (&reconciliation.ReconcileRoleBindingOptions{RoleBinding: b, Client: bindingModifier{modifier, absent}, Confirm: true}).Run()
				return err
			})
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

// createdFirst reconciles as if the object were absent, and reads it only when
// it turns out to exist.
func createdFirst(reconcile func(absent bool) error) error {
	err := reconcile(true)
	if apierrors.IsAlreadyExists(err) {
		return reconcile(false)
	}
	return err
}

type roleModifier struct {
	reconciliation.RuleOwnerModifier
	absent bool
}

func (m roleModifier) Get(namespace, name string) (reconciliation.RuleOwner, error) {
	if m.absent {
		return nil, apierrors.NewNotFound(rbacv1.Resource("roles"), name)
	}
	return m.RuleOwnerModifier.Get(namespace, name)
}

type bindingModifier struct {
	reconciliation.RoleBindingModifier
	absent bool
}

func (m bindingModifier) Get(namespace, name string) (reconciliation.RoleBinding, error) {
	if m.absent {
		return nil, apierrors.NewNotFound(rbacv1.Resource("rolebindings"), name)
	}
	return m.RoleBindingModifier.Get(namespace, name)
}

// ensurePriorityClasses creates what is missing; what is there stays as it is.
func ensurePriorityClasses(ctx context.Context, client kubernetes.Interface) error {
	for _, class := range schedulingapiv1.SystemPriorityClasses() {
		_, err := client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}
