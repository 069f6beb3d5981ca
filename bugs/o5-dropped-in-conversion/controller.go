// Package o5 reconciles pipelines, each with a ConfigMap, and converts pipelines between their versions v1
// and v1alpha1. Class O5: what one of the versions cannot express is lost in the other one.
package o5

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/bugs/internal/child"
	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// PipelineSpec is the desired state in v1.
type PipelineSpec struct {
	Tasks []string `json:"tasks,omitempty"`
	// When is the condition under which the tasks run. v1alpha1 does not have it.
	When string `json:"when,omitempty"`
}

// PipelineStatus is the observed state.
type PipelineStatus struct {
	Generation int64 `json:"generation,omitempty"`
}

// Pipeline is a list of tasks.
type Pipeline = object.Object[PipelineSpec, PipelineStatus]

// converter converts a pipeline, in which only the apiVersion has been changed.
type converter interface {
	down(pipeline *unstructured.Unstructured)
	up(pipeline *unstructured.Unstructured)
}

type reconciler struct{ child.Keeper }

// Setup adds the controller and its conversion webhook to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[PipelineSpec, PipelineStatus]("Pipeline")
	var c converter = dropping{}
	if repaired {
		c = keeping{}
	}
	mgr.GetWebhookServer().Register("/convert", handler{c})
	r := &reconciler{child.NewKeeper(mgr)}
	return ctrl.NewControllerManagedBy(mgr).Named("o5").For(&Pipeline{}).Owns(&corev1.ConfigMap{}).Complete(r)
}

// Reconcile creates or updates the ConfigMap of a pipeline, and reports the result.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var p Pipeline
	if err := r.Live.Get(ctx, req.NamespacedName, &p); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !p.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	m := &corev1.ConfigMap{}
	m.Namespace, m.Name = p.Namespace, p.Name
	done, err := r.Ensure(ctx, &p, m, func() {
		m.Data = map[string]string{"tasks": strings.Join(p.Spec.Tasks, " "), "when": p.Spec.When}
		r.Own(&p, m)
	})
	if err != nil || !done || p.Status.Generation == p.Generation {
		return ctrl.Result{}, err
	}
	p.Status.Generation = p.Generation
	return ctrl.Result{}, client.IgnoreNotFound(r.Status().Update(ctx, &p))
}

// review is a ConversionReview of apiextensions.k8s.io/v1.
type review struct {
	metav1.TypeMeta `json:",inline"`
	Request         *request  `json:"request,omitempty"`
	Response        *response `json:"response,omitempty"`
}

type request struct {
	UID               string                      `json:"uid"`
	DesiredAPIVersion string                      `json:"desiredAPIVersion"`
	Objects           []unstructured.Unstructured `json:"objects"`
}

type response struct {
	UID              string                      `json:"uid"`
	ConvertedObjects []unstructured.Unstructured `json:"convertedObjects"`
	Result           metav1.Status               `json:"result"`
}

// handler answers conversion reviews.
type handler struct{ converter }

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in review
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Request == nil {
		http.Error(w, "this is not a conversion review", http.StatusBadRequest)
		return
	}
	out := review{TypeMeta: in.TypeMeta, Response: &response{UID: in.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}}
	for _, pipeline := range in.Request.Objects {
		h.convert(&pipeline, in.Request.DesiredAPIVersion)
		out.Response.ConvertedObjects = append(out.Response.ConvertedObjects, pipeline)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

// convert converts one pipeline, unless it has the version already.
func (h handler) convert(pipeline *unstructured.Unstructured, version string) {
	if pipeline.GetAPIVersion() == version {
		return
	}
	pipeline.SetAPIVersion(version)
	if version == object.Version.String() {
		h.up(pipeline)
	} else {
		h.down(pipeline)
	}
}
