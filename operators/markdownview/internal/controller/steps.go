package controller

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/metrics"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/refs"
)

// apply makes the children what they are to be next. What fails is noted; the
// rest goes on.
func (r *Reconciler) apply(ctx context.Context, p *pass) {
	s := p.rollout.next()
	if p.rollout.deployed != "" && s.deploy != p.rollout.deployed {
		// The cache may not know yet what was written a moment ago. To replace a
		// template on a wrong belief could take away the viewers that readers have.
		if err := r.observe(ctx, p, r.reader); err != nil {
			p.retry = append(p.retry, err)
			return
		}
		s = p.rollout.next()
	}
	if p.wanted != nil && s.deploy == p.wanted.template && !r.applyContent(ctx, p) {
		// Viewers of a content that is not there would never start.
		p.wanted, p.rollout.desired = nil, ""
		s = p.rollout.next()
	}
	r.applyDeployment(ctx, p, s)
	r.applyService(ctx, p, s)
	for _, c := range others(p.view) {
		c.keepPath = p.behind()
		p.failed(ctx, r.ensure(ctx, p, c), false)
	}
	r.applyRoute(ctx, p)
	if s.prune && p.wanted != nil {
		r.prune(ctx, p)
	}
}

// applyContent makes the ConfigMaps of the wanted content.
func (r *Reconciler) applyContent(ctx context.Context, p *pass) bool {
	ok := true
	for _, cm := range children.ConfigMaps(p.wanted.site) {
		if p.failed(ctx, r.ensure(ctx, p, contentMap(cm)), true) {
			ok = false
		}
	}
	return ok
}

func (r *Reconciler) applyDeployment(ctx context.Context, p *pass, s step) {
	if s.deploy == "" {
		return
	}
	var want *appsv1ac.DeploymentApplyConfiguration
	if p.wanted != nil && s.deploy == p.wanted.template {
		want = children.Deployment(p.view, p.wanted.pods, s.hold)
	} else {
		// What is deployed stays for now, and is only to be read from the object:
		// the spec says something else already.
		applied, err := appsv1ac.ExtractDeployment(p.deployment, children.Owner)
		if err != nil || applied.Spec == nil || applied.Spec.Template == nil {
			return
		}
		want = children.Deployment(p.view, applied.Spec.Template, s.hold)
	}
	p.failed(ctx, r.ensure(ctx, p, deployment(children.ViewerName(p.view.Name), want)), true)
}

func (r *Reconciler) applyService(ctx context.Context, p *pass, s step) {
	if s.sel == "" || s.sel == unlabelled {
		return
	}
	want := children.Service(p.view, p.contents[s.sel], s.sel)
	failed := p.failed(ctx, r.ensure(ctx, p, service(children.ViewerName(p.view.Name), want)), true)
	if !failed && p.rollout.selected != "" && s.sel != p.rollout.selected {
		r.switched(p, s.sel)
	}
}

// behind tells whether readers have other viewers than those that the spec asks
// for. Such may be at another path, and a route is to lead to where they are.
func (p *pass) behind() bool {
	return p.rollout.selected != "" && p.rollout.selected != p.rollout.desired
}

// applyRoute is for clusters with the Gateway API only.
func (r *Reconciler) applyRoute(ctx context.Context, p *pass) {
	c := httpRoute(p.view)
	c.keepPath = p.behind()
	known, err := r.routes.known()
	switch {
	case err != nil:
		p.retry = append(p.retry, err)
	case known:
		p.failed(ctx, r.ensure(ctx, p, c), false)
	case c.want != nil:
		p.trouble(trouble{viewv1.ReasonGatewayAPIMissing,
			"the cluster does not know HTTPRoute (gateway.networking.k8s.io/v1): install the Gateway API, or use ingress", false})
		p.lookAgain(refusalRetry)
	}
}

// prune deletes the content that nobody reads any more.
func (r *Reconciler) prune(ctx context.Context, p *pass) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
	err := r.client.List(ctx, &list, client.InNamespace(p.view.Namespace),
		client.MatchingLabelsSelector{Selector: children.Selector(p.view.Name)})
	if err != nil {
		p.retry = append(p.retry, err)
		return
	}
	for i := range list.Items {
		cm := &list.Items[i]
		hash := cm.Labels[children.ContentLabel]
		if hash == "" || hash == p.wanted.site.Hash || !metav1.IsControlledBy(cm, p.view) || cm.DeletionTimestamp != nil {
			continue
		}
		err := r.client.Delete(ctx, cm, client.Preconditions{UID: new(cm.UID)})
		if err == nil {
			metrics.ChildWritten("ConfigMap", "delete")
		}
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			p.failed(ctx, &childError{kind: "ConfigMap", name: cm.Name, err: err}, false)
		}
	}
}

// resources are those of the kinds of children.
var resources = map[string]schema.GroupVersionResource{
	"ConfigMap":           {Version: "v1", Resource: "configmaps"},
	"Service":             {Version: "v1", Resource: "services"},
	"Deployment":          {Group: "apps", Version: "v1", Resource: "deployments"},
	"PodDisruptionBudget": {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	"NetworkPolicy":       {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	"Ingress":             {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	"HTTPRoute":           {Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"},
}

// watchNames asks to hear of the objects that no cache of the operator has: the
// ConfigMaps that the spec names, and what is in the way.
func (r *Reconciler) watchNames(p *pass, configMaps []string) {
	var want []refs.Ref
	for _, name := range configMaps {
		want = append(want, refs.Ref{Resource: resources["ConfigMap"], Namespace: p.view.Namespace, Name: name})
	}
	r.refs.Want(types.NamespacedName{Namespace: p.view.Namespace, Name: p.view.Name}, append(want, p.foreign...)...)
}

func foreignRef(namespace string, c *childError) refs.Ref {
	return refs.Ref{Resource: resources[c.kind], Namespace: namespace, Name: c.name}
}
