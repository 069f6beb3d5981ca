// Package v1 implements the webhooks of MarkdownViews. The webhooks normalize values and make
// checks that a schema cannot express: checks of the pages, and checks that depend on other rules
// of the API.
//
// The rules in the schema do not depend on these webhooks. The operator also handles objects
// that the webhooks would refuse, because the webhooks may have been disabled.
package v1

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/images"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/overrides"
)

// Without a running operator, MarkdownViews can be read and their status can be written, but
// their specs cannot be changed, because a failing webhook refuses the change.
//
// +kubebuilder:webhook:path=/mutate-view-koboshi-dev-v1-markdownview,mutating=true,failurePolicy=fail,sideEffects=None,groups=view.koboshi.dev,resources=markdownviews,verbs=create;update,versions=v1,name=mmarkdownview.view.koboshi.dev,admissionReviewVersions=v1,timeoutSeconds=10
// +kubebuilder:webhook:path=/validate-view-koboshi-dev-v1-markdownview,mutating=false,failurePolicy=fail,sideEffects=None,groups=view.koboshi.dev,resources=markdownviews,verbs=create;update,versions=v1,name=vmarkdownview.view.koboshi.dev,admissionReviewVersions=v1,timeoutSeconds=10

// Options hold the operator's configuration.
type Options struct {
	// DefaultImage is the operator's own viewer, which is always allowed.
	DefaultImage string
	// Images lists the other allowed values of viewerImage. Authors can run these images,
	// so none are allowed by default.
	Images images.List
	// Overrides limits the fields that change how children are exposed and scheduled;
	// nil allows all.
	Overrides *overrides.Policy
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

// defaulter normalizes values. The webhook does not write the operator's defaults, such as the
// image, because they would remain after a change of the configuration.
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

// validator refuses specs from which no site can be made, and warns about problems that
// readers would notice.
type validator struct{ options Options }

func (v *validator) ValidateCreate(_ context.Context, view *viewv1.MarkdownView) (admission.Warnings, error) {
	return v.validate(view, nil)
}

// ValidateUpdate accepts an unchanged spec, so that finalizers and labels can be changed even
// if the object was admitted under other rules.
func (v *validator) ValidateUpdate(_ context.Context, old, view *viewv1.MarkdownView) (admission.Warnings, error) {
	before := old.Spec.DeepCopy()
	spell(before)
	after := view.Spec.DeepCopy()
	spell(after) // Default does not normalize objects that are being deleted
	if apiequality.Semantic.DeepEqual(before, after) {
		return nil, nil
	}
	return v.validate(view, before)
}

func (v *validator) ValidateDelete(context.Context, *viewv1.MarkdownView) (admission.Warnings, error) {
	return nil, nil
}

// validate collects all problems. before is nil for a new object.
func (v *validator) validate(view *viewv1.MarkdownView, before *viewv1.MarkdownViewSpec) (admission.Warnings, error) {
	spec, at := &view.Spec, field.NewPath("spec")
	var found findings
	checkContent(spec, at, &found)
	checkSources(spec.ContentFrom, at.Child("contentFrom"), &found)
	v.checkImage(spec, before, at.Child("viewerImage"), &found)
	v.checkOverrides(spec, before, at, &found)
	checkPublishing(spec, at, &found)
	checkPods(spec, at, &found)
	if len(found.errors) > 0 {
		return found.warnings(), apierrors.NewInvalid(viewv1.GroupVersion.WithKind("MarkdownView").GroupKind(), view.Name, found.told())
	}
	return found.warnings(), nil
}

// checkImage checks a new image. For an image that the object already had, checkImage only warns,
// so that the pages of the site can still be edited; the controller checks this image again.
func (v *validator) checkImage(spec, before *viewv1.MarkdownViewSpec, at *field.Path, found *findings) {
	image := spec.ViewerImage
	switch {
	case image == "" || image == v.options.DefaultImage || v.options.Images.Allows(image):
	case before != nil && before.ViewerImage == image:
		found.warn(at, "the operator does not currently allow this image")
	case !images.Valid(image):
		found.refuse(field.Invalid(at, image, "is not the name of an image"))
	default:
		found.refuse(field.Forbidden(at, fmt.Sprintf("the operator does not allow %s; omit viewerImage, or ask the administrator to add the image to --allowed-viewer-images", image)))
	}
}

// checkOverrides refuses settings that the platform team does not allow. For a setting that the
// object already had, checkOverrides only warns, so that pages can still be edited; the controller
// ignores the setting.
func (v *validator) checkOverrides(spec, before *viewv1.MarkdownViewSpec, at *field.Path, found *findings) {
	var known []overrides.Denial
	if before != nil {
		known = v.options.Overrides.Denied(before)
	}
	for _, d := range v.options.Overrides.Denied(spec) {
		at := at.Child(strings.Split(d.Field, ".")[0], strings.Split(d.Field, ".")[1:]...).Key(d.Key)
		if slices.Contains(known, d) {
			found.warn(at, "the operator does not currently allow this setting and ignores it")
			continue
		}
		found.refuse(field.Forbidden(at, "the operator does not allow this setting; remove it, or ask the administrator to add it to --author-overrides"))
	}
}
