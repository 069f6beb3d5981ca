// Package e5 has the bug of class E5: a webhook adds a field at every apply, so that even
// applying an unchanged configuration is a change.
package e5

import (
	"context"
	"encoding/json"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/koboshi-dev/koboshi/bugs/internal/object"
)

// TrainingSpec is the desired state.
type TrainingSpec struct {
	Workers int64 `json:"workers,omitempty"`
}

// TrainingStatus is the observed state.
type TrainingStatus struct {
	Workers int64 `json:"workers,omitempty"`
}

// Training is work for a Gang.
type Training = object.Object[TrainingSpec, TrainingStatus]

// GangSpec describes a number of identical workers.
type GangSpec struct {
	Workers  int64    `json:"workers,omitempty"`
	Retries  int64    `json:"retries,omitempty"`
	Template Template `json:"template"`
}

// Template describes one worker.
type Template struct {
	// Metadata contains creationTimestamp, which the CRD of Gang does not have. The field
	// is encoded even if it is empty, as in all Kubernetes types before 1.34.
	Metadata struct {
		CreationTimestamp *metav1.Time `json:"creationTimestamp"`
	} `json:"metadata"`
	Image string `json:"image,omitempty"`
}

// Gang is the child of a Training.
type Gang = object.Object[GangSpec, struct{}]

type reconciler struct {
	client.Client
	live client.Reader
}

// Setup adds the controller and its webhook to a manager.
func Setup(mgr ctrl.Manager, repaired bool) error {
	object.Register[TrainingSpec, TrainingStatus]("Training")
	object.Register[GangSpec, struct{}]("Gang")
	needed := always
	if repaired {
		needed = onCreation
	}
	handler := &defaulter{admission.NewDecoder(mgr.GetScheme()), needed}
	mgr.GetWebhookServer().Register("/default-gang", &admission.Webhook{Handler: handler})
	r := &reconciler{Client: mgr.GetClient(), live: mgr.GetAPIReader()}
	return ctrl.NewControllerManagedBy(mgr).Named("e5").For(&Training{}).Owns(&Gang{}).Complete(r)
}

// defaulter is the webhook of Gang.
type defaulter struct {
	admission.Decoder
	needed func(admissionv1.Operation) bool
}

// Handle fills in the defaults and responds with the resulting patch.
func (d *defaulter) Handle(_ context.Context, req admission.Request) admission.Response {
	if !d.needed(req.Operation) {
		return admission.Allowed("")
	}
	var g Gang
	if err := d.Decode(req, &g); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if g.Spec.Retries == 0 {
		g.Spec.Retries = 3
	}
	defaulted, err := json.Marshal(&g)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(req.Object.Raw, defaulted)
}

// Reconcile applies the Gang. Applying an unchanged Gang changes nothing, so it causes no
// event.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var t Training
	if err := r.live.Get(ctx, req.NamespacedName, &t); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !t.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // the garbage collector does the rest
	}
	gang := client.ApplyConfigurationFromUnstructured(gang(&t))
	if err := r.Apply(ctx, gang, client.FieldOwner("training"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, err
	}
	if t.Status.Workers == t.Spec.Workers {
		return ctrl.Result{}, nil
	}
	t.Status.Workers = t.Spec.Workers
	return ctrl.Result{}, r.Status().Update(ctx, &t)
}

func gang(t *Training) *unstructured.Unstructured {
	owner := metav1.NewControllerRef(t, object.Version.WithKind("Training"))
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": object.Version.String(),
		"kind":       "Gang",
		"metadata": map[string]any{
			"namespace": t.Namespace,
			"name":      t.Name,
			"ownerReferences": []any{map[string]any{
				"apiVersion": owner.APIVersion, "kind": owner.Kind, "name": owner.Name, "uid": string(owner.UID),
				"controller": true, "blockOwnerDeletion": true,
			}},
		},
		"spec": map[string]any{
			"workers":  t.Spec.Workers,
			"template": map[string]any{"image": "trainer:v1"},
		},
	}}
}
