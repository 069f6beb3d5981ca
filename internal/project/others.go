package project

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// leaveOutOtherWebhooks removes the webhooks that other workloads of the installation serve.
// The API server would send their requests to the controller, which does not
// serve these webhooks.
func (p *Project) leaveOutOtherWebhooks(parts *parts) {
	if p.manager == nil || len(parts.workloads) < 2 {
		return
	}
	parts.webhooks = slices.DeleteFunc(parts.webhooks, func(d document) bool {
		hooks, _, _ := unstructured.NestedSlice(d.Object.Object, "webhooks")
		own := slices.DeleteFunc(slices.Clone(hooks), func(hook any) bool {
			hookMap, _ := hook.(map[string]any)
			other := p.otherWorkload(*parts, hookMap)
			if other != nil {
				p.note("left out a webhook of %s, because %s serves it", d, other)
			}
			return other != nil
		})
		if len(own) < len(hooks) {
			d.Object.Object["webhooks"] = own
		}
		return len(own) == 0 && len(hooks) > 0
	})
	for _, d := range parts.install {
		webhook, found, _ := unstructured.NestedMap(d.Object.Object, "spec", "conversion", "webhook")
		if !found || !isCRD(d) {
			continue
		}
		if other := p.otherWorkload(*parts, webhook); other != nil {
			p.note("objects of %s are not converted between versions, because %s serves the webhook", d, other)
			_ = unstructured.SetNestedMap(d.Object.Object, map[string]any{"strategy": "None"}, "spec", "conversion")
		}
	}
}

// otherWorkload returns the workload that serves a webhook through its Service, or nil if this
// workload is the controller's or does not exist.
func (p *Project) otherWorkload(parts parts, webhook map[string]any) *document {
	namespace, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "namespace")
	name, found, _ := unstructured.NestedString(webhook, "clientConfig", "service", "name")
	service := parts.find("Service", namespace, name)
	if !found || service == nil {
		return nil
	}
	selector, _, _ := unstructured.NestedStringMap(service.Object.Object, "spec", "selector")
	selects := func(d document) bool {
		return namespaceOf(d.Object) == namespaceOf(service.Object) &&
			labels.SelectorFromSet(selector).Matches(labels.Set(templateOf(d).Labels))
	}
	if len(selector) == 0 || selects(p.manager.workload) {
		return nil
	}
	for i, other := range parts.workloads {
		if selects(other) {
			return &parts.workloads[i]
		}
	}
	return nil
}
