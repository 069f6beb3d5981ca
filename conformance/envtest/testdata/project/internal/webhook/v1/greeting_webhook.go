// Package v1 holds the webhooks of the API group post.example.com, version v1.
package v1

import (
	"context"
	"errors"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	postv1 "example.com/post/api/v1"
)

// SetupGreetingWebhookWithManager registers both webhooks of Greeting.
func SetupGreetingWebhookWithManager(mgr ctrl.Manager) error {
	return ctrl.NewWebhookManagedBy(mgr, &postv1.Greeting{}).
		WithDefaulter(&GreetingCustomDefaulter{}).
		WithValidator(&GreetingCustomValidator{}).
		Complete()
}

// +kubebuilder:webhook:path=/mutate-post-example-com-v1-greeting,mutating=true,failurePolicy=fail,sideEffects=None,groups=post.example.com,resources=greetings,verbs=create;update,versions=v1,name=mgreeting-v1.kb.io,admissionReviewVersions=v1

// GreetingCustomDefaulter fills in the usual words.
type GreetingCustomDefaulter struct{}

// Default fills in the words.
func (d *GreetingCustomDefaulter) Default(_ context.Context, greeting *postv1.Greeting) error {
	if greeting.Spec.Words == "" {
		greeting.Spec.Words = "Hello,"
	}
	return nil
}

// +kubebuilder:webhook:path=/validate-post-example-com-v1-greeting,mutating=false,failurePolicy=fail,sideEffects=None,groups=post.example.com,resources=greetings,verbs=create;update,versions=v1,name=vgreeting-v1.kb.io,admissionReviewVersions=v1

// GreetingCustomValidator refuses greetings that shout.
type GreetingCustomValidator struct{}

var _ admission.Validator[*postv1.Greeting] = &GreetingCustomValidator{}

// ValidateCreate refuses a greeting that shouts.
func (v *GreetingCustomValidator) ValidateCreate(_ context.Context, greeting *postv1.Greeting) (admission.Warnings, error) {
	return nil, validate(greeting)
}

// ValidateUpdate refuses a greeting that begins to shout.
func (v *GreetingCustomValidator) ValidateUpdate(_ context.Context, _, greeting *postv1.Greeting) (admission.Warnings, error) {
	return nil, validate(greeting)
}

// ValidateDelete allows every deletion.
func (v *GreetingCustomValidator) ValidateDelete(context.Context, *postv1.Greeting) (admission.Warnings, error) {
	return nil, nil
}

func validate(greeting *postv1.Greeting) error {
	if words := greeting.Spec.Words; strings.ToUpper(words) == words {
		return errors.New("spec.words: a greeting does not shout; write it in lower case")
	}
	return nil
}
