package scaffold

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koboshi-dev/koboshi/internal/project/projectfile"
)

// WebhookOptions describes the webhooks of a kind.
type WebhookOptions struct {
	Dir string
	Kind
	Defaulting, Validation, Conversion bool
	// Spokes lists the versions that are converted to and from Version, which is the hub.
	Spokes []string
	// DefaultingPath and ValidationPath replace the paths at which the webhooks are served.
	DefaultingPath, ValidationPath string
	Force                          bool
}

// CreateWebhook plans webhooks for a kind. Existing webhooks of the kind are kept.
func CreateWebhook(o WebhookOptions) (*Plan, error) {
	f, err := open(o.Dir)
	if err != nil {
		return nil, err
	}
	r, err := o.resource(f, false)
	if err != nil {
		return nil, err
	}
	if err := o.check(f, &r); err != nil {
		return nil, err
	}
	p, err := plan(o.Dir, f, o.Force, func(f *projectfile.File) error {
		w := projectfile.Webhooks{WebhookVersion: "v1"}
		if r.Webhooks != nil {
			w = *r.Webhooks
		}
		w.Defaulting = w.Defaulting || o.Defaulting
		w.Validation = w.Validation || o.Validation
		w.Conversion = w.Conversion || o.Conversion
		for _, spoke := range o.Spokes {
			if !slices.Contains(w.Spoke, spoke) {
				w.Spoke = append(slices.Clone(w.Spoke), spoke)
			}
		}
		if o.DefaultingPath != "" {
			w.DefaultingPath = o.DefaultingPath
		}
		if o.ValidationPath != "" {
			w.ValidationPath = o.ValidationPath
		}
		r.Webhooks = &w
		f.Set(r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.Generate = true
	if r.External {
		p.Modules = append(p.Modules, moduleArgument(o.Kind))
	}
	return p, nil
}

// check refuses webhooks that could not work, and completes the resource.
func (o *WebhookOptions) check(f *projectfile.File, r *projectfile.Resource) error {
	if !o.Defaulting && !o.Validation && !o.Conversion {
		return errors.New("there is nothing to create: use --defaulting, --programmatic-validation or --conversion")
	}
	if usesClientGo(f) {
		return fmt.Errorf("webhooks need a controller-runtime manager, but the controllers of this project use client-go alone; " +
			"write rules as +kubebuilder:validation:XValidation markers in the types, or as a ValidatingAdmissionPolicy")
	}
	old := f.Find(*r)
	switch {
	case old != nil:
		*r = *old
	case !r.Core && !r.External:
		return fmt.Errorf("the project has no API for kind %s in %s/%s; run koboshi create api first", r.Kind, r.QualifiedGroup(), r.Version)
	}
	if !o.Conversion {
		if len(o.Spokes) > 0 {
			return errors.New("--spoke needs --conversion")
		}
		return nil
	}
	if r.API == nil {
		return fmt.Errorf("kind %s is defined elsewhere, so this project cannot convert it", r.Kind)
	}
	for _, spoke := range o.Spokes {
		other := *r
		other.Version = spoke
		switch {
		case len(validation.IsDNS1035Label(spoke)) > 0:
			return fmt.Errorf("--spoke %q is not a version such as v1 or v1beta1", spoke)
		case spoke == r.Version:
			return fmt.Errorf("--spoke %s: the hub cannot be its own spoke", spoke)
		case f.Find(other) == nil:
			return fmt.Errorf("--spoke %s: the project has no API for kind %s in this version; run koboshi create api --version %s first", spoke, r.Kind, spoke)
		}
	}
	return nil
}
