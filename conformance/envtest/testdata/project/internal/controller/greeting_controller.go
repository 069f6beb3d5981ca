// Package controller writes Greetings into ConfigMaps.
package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	postv1 "example.com/post/api/v1"
)

// GreetingReconciler keeps one ConfigMap per Greeting.
type GreetingReconciler struct {
	client.Client
	Scheme *runtime.Scheme
}

// +kubebuilder:rbac:groups=post.example.com,resources=greetings,verbs=get;list;watch
// +kubebuilder:rbac:groups=post.example.com,resources=greetings/status,verbs=get;update;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;update;patch

// Reconcile writes the ConfigMap, and then its content into the status.
func (r *GreetingReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var greeting postv1.Greeting
	if err := r.Get(ctx, req.NamespacedName, &greeting); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	said := greeting.Spec.Words + " " + greeting.Spec.To
	written := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: greeting.Namespace, Name: greeting.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, written, func() error {
		written.Data = map[string]string{"greeting": said}
		return controllerutil.SetControllerReference(&greeting, written, r.Scheme)
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the greeting: %w", err)
	}
	if greeting.Status.Said == said {
		return ctrl.Result{}, nil
	}
	greeting.Status.Said = said
	return ctrl.Result{}, r.Status().Update(ctx, &greeting)
}

// SetupWithManager registers the controller.
func (r *GreetingReconciler) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		For(&postv1.Greeting{}).
		Owns(&corev1.ConfigMap{}).
		Named("greeting").
		Complete(r)
}
