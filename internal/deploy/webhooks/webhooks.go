// Package webhooks finds out whether the API server reaches the webhooks of a deployment.
//
// It asks the API server to create an object that a rule of the webhook covers, as a dry run. The
// API server then calls the webhook, and stores nothing. A refusal by the webhook is an answer, too.
package webhooks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/ready"
	"github.com/koboshi-dev/koboshi/internal/manifest/compat"
)

// probeName is the name of the objects that are never stored.
const probeName = "koboshi-deploy-probe"

// Probe is one webhook, and the object that is created as a dry run to reach it.
type Probe struct {
	cluster.ID // of the configuration
	Webhook    string
	mutating   bool
	object     *unstructured.Unstructured // nil if no object is known
}

func (p Probe) String() string { return fmt.Sprintf("webhook %s in %s", p.Webhook, p.ID) }

// Probes returns the probes for all webhooks of the configurations. Objects that need a namespace
// are created in the given one.
func Probes(configurations, crds []*unstructured.Unstructured, namespace string) ([]Probe, error) {
	var all []Probe
	for _, u := range configurations {
		// Both kinds of configurations have the same fields, as far as they are read here.
		var c admissionv1.ValidatingWebhookConfiguration
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &c); err != nil {
			return nil, fmt.Errorf("reading %s: %w", cluster.IDOf(u), err)
		}
		for _, w := range c.Webhooks {
			object, err := sampleFor(w.Rules, crds, namespace)
			if err != nil {
				return nil, err
			}
			all = append(all, Probe{ID: cluster.IDOf(u), Webhook: w.Name, mutating: u.GetKind() == "MutatingWebhookConfiguration", object: object})
		}
	}
	return all, nil
}

// sampleFor returns an object whose creation a rule covers, or nil if no CRD defines one.
func sampleFor(rules []admissionv1.RuleWithOperations, crds []*unstructured.Unstructured, namespace string) (*unstructured.Unstructured, error) {
	for _, crd := range crds {
		var d apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(crd.Object, &d); err != nil {
			return nil, fmt.Errorf("reading %s: %w", cluster.IDOf(crd), err)
		}
		for i := range d.Spec.Versions {
			v := &d.Spec.Versions[i]
			if v.Served && slices.ContainsFunc(rules, func(r admissionv1.RuleWithOperations) bool { return covers(r, &d, v.Name) }) {
				return sample(&d, v, namespace), nil
			}
		}
	}
	return nil, nil //nolint:nilnil // nil is the documented answer
}

func covers(r admissionv1.RuleWithOperations, d *apiextensionsv1.CustomResourceDefinition, version string) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return (slices.Contains(r.Operations, admissionv1.Create) || slices.Contains(r.Operations, admissionv1.OperationAll)) &&
		has(r.APIGroups, d.Spec.Group) && has(r.APIVersions, version) && (has(r.Resources, d.Spec.Names.Plural) || slices.Contains(r.Resources, "*/*"))
}

func sample(d *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion, namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: compat.Minimal(v)}
	u.SetGroupVersionKind(schema.GroupVersionKind{Group: d.Spec.Group, Version: v.Name, Kind: d.Spec.Names.Kind})
	u.SetName(probeName)
	if d.Spec.Scope == apiextensionsv1.NamespaceScoped {
		u.SetNamespace(namespace)
	}
	return u
}

// Wait waits until the API server reaches all webhooks. It returns those that no probe could test.
func Wait(ctx context.Context, c *cluster.Cluster, probes []Probe, report func([]ready.Pending)) (untested []Probe, err error) {
	left := probes
	err = ready.Until(ctx, "the API server does not reach the webhooks of these objects", report, func(ctx context.Context) []ready.Pending {
		var pending []ready.Pending
		var again []Probe
		for _, p := range left {
			switch state, err := p.try(ctx, c); state {
			case unreachable:
				again = append(again, p)
				pending = append(pending, ready.Pending{ID: p.ID, Reason: err.Error()})
			case unknown:
				untested = append(untested, p)
			case answered:
			}
		}
		left = again
		return pending
	})
	return untested, err
}

type state int

const (
	answered state = iota
	unreachable
	unknown
)

func (p Probe) try(ctx context.Context, c *cluster.Cluster) (state, error) {
	if p.object == nil {
		return unknown, nil
	}
	at, err := c.At(p.object)
	if err != nil {
		return unreachable, err
	}
	_, err = at.Create(ctx, p.object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: cluster.FieldManager})
	return p.judge(err), err
}

// judge decides what the result of a creation says about the webhook. The API server calls mutating
// webhooks first, then validates the object, and calls validating webhooks last.
func (p Probe) judge(err error) state {
	switch {
	case err == nil:
		return answered
	case strings.Contains(err.Error(), "failed calling webhook"):
		return unreachable
	case strings.Contains(err.Error(), "does not support dry run"), apierrors.IsForbidden(err) && !strings.Contains(err.Error(), "admission webhook"):
		return unknown
	case apierrors.IsServerTimeout(err), apierrors.IsTooManyRequests(err), apierrors.IsServiceUnavailable(err), apierrors.ReasonForError(err) == metav1.StatusReasonUnknown && !strings.Contains(err.Error(), "admission webhook"):
		return unreachable // the API server has not answered
	case apierrors.IsInvalid(err) && !p.mutating && !strings.Contains(err.Error(), "admission webhook"):
		return unknown
	}
	return answered
}
