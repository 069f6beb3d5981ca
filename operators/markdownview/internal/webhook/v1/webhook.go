// Package v1 is what the API server asks of a MarkdownView before it stores it:
// one spelling for values that have several, and the checks that a schema cannot
// do, because they need to read the pages or to know other rules of the API.
//
// What the schema can say holds without these webhooks; and the operator copes
// with all that they would refuse, for they may have been off when it came.
package v1

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/images"
)

// The MarkdownView may be read and written while no operator is there to answer,
// but not changed: a failure of the webhook refuses the change.
//
// +kubebuilder:webhook:path=/mutate-view-koboshi-dev-v1-markdownview,mutating=true,failurePolicy=fail,sideEffects=None,groups=view.koboshi.dev,resources=markdownviews,verbs=create;update,versions=v1,name=mmarkdownview.view.koboshi.dev,admissionReviewVersions=v1,timeoutSeconds=10
// +kubebuilder:webhook:path=/validate-view-koboshi-dev-v1-markdownview,mutating=false,failurePolicy=fail,sideEffects=None,groups=view.koboshi.dev,resources=markdownviews,verbs=create;update,versions=v1,name=vmarkdownview.view.koboshi.dev,admissionReviewVersions=v1,timeoutSeconds=10

// Options are what the operator is configured with.
type Options struct {
	// DefaultImage is the operator's own viewer, which may always be named.
	DefaultImage string
	// Images may be named in viewerImage besides. Who makes a MarkdownView has
	// the operator run an image for them, so that nothing is allowed by default.
	Images images.List
}

// SetupWithManager serves the webhooks with the manager's webhook server.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	err := ctrl.NewWebhookManagedBy(mgr, &viewv1.MarkdownView{}).
		WithDefaulter(defaulter{}).
		WithValidator(&validator{options: o}).
		Complete()
	if err != nil {
		return fmt.Errorf("setting up the webhooks of MarkdownViews: %w", err)
	}
	return nil
}

// defaulter gives values one spelling. Defaults of the operator, such as the
// image, are not written: they would outlast their change.
type defaulter struct{}

func (defaulter) Default(_ context.Context, view *viewv1.MarkdownView) error {
	if view.DeletionTimestamp.IsZero() {
		spell(&view.Spec)
	}
	return nil
}

func spell(spec *viewv1.MarkdownViewSpec) {
	if path := spec.BasePath; path != "" && path[len(path)-1] != '/' {
		spec.BasePath += "/"
	}
}

// validator refuses what cannot become a site, and warns of what its readers
// would stumble over.
type validator struct{ options Options }

func (v *validator) ValidateCreate(_ context.Context, view *viewv1.MarkdownView) (admission.Warnings, error) {
	return v.validate(view, nil)
}

// ValidateUpdate has nothing to say where the spec stays as it is: an object that
// was let in by other rules can still lose its finalizers, and be labelled.
func (v *validator) ValidateUpdate(_ context.Context, old, view *viewv1.MarkdownView) (admission.Warnings, error) {
	before := old.Spec.DeepCopy()
	spell(before)
	after := view.Spec.DeepCopy()
	spell(after) // what is being deleted is not spelled
	if apiequality.Semantic.DeepEqual(before, after) {
		return nil, nil
	}
	return v.validate(view, before)
}

func (v *validator) ValidateDelete(context.Context, *viewv1.MarkdownView) (admission.Warnings, error) {
	return nil, nil
}

// validate collects all that is wrong. before is nil for a new object.
func (v *validator) validate(view *viewv1.MarkdownView, before *viewv1.MarkdownViewSpec) (admission.Warnings, error) {
	spec, at := &view.Spec, field.NewPath("spec")
	var found findings
	checkContent(spec, at, &found)
	checkSources(spec.ContentFrom, at.Child("contentFrom"), &found)
	v.checkImage(spec, before, at.Child("viewerImage"), &found)
	checkPublishing(spec, at, &found)
	checkPods(spec, at, &found)
	if len(found.errors) > 0 {
		return found.warnings(), apierrors.NewInvalid(viewv1.GroupVersion.WithKind("MarkdownView").GroupKind(), view.Name, found.told())
	}
	return found.warnings(), nil
}

// checkImage judges an image that is new. One that an operator has allowed once
// is left to the controller, or else a page could not be corrected any more.
func (v *validator) checkImage(spec, before *viewv1.MarkdownViewSpec, at *field.Path, found *findings) {
	image := spec.ViewerImage
	switch {
	case image == "" || image == v.options.DefaultImage || v.options.Images.Allows(image):
	case before != nil && before.ViewerImage == image:
		found.warn(at, "this image is not, or no longer, one that the operator allows")
	case !images.Valid(image):
		found.refuse(field.Invalid(at, image, "is not the name of an image"))
	default:
		found.refuse(field.Forbidden(at, fmt.Sprintf("%s is not an image that the operator allows; leave viewerImage out, or have it added to --allowed-viewer-images", image)))
	}
}
