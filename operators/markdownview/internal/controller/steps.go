package controller

import (
	"context"
	"fmt"

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

// apply brings the children to their next state, records failures, and continues with
// the other children.
func (r *Reconciler) apply(ctx context.Context, p *pass) {
	s := p.rollout.next()
	if p.rollout.deployed != "" && s.deploy != p.rollout.deployed {
		// The cache may lack the latest write. If a template were replaced based on stale
		// data, viewers that serve readers could be removed.
		if err := r.observe(ctx, p, r.reader); err != nil {
			p.readFailed(err, true)
			p.unobserved = true
			return
		}
		s = p.rollout.next()
	}
	if p.wanted != nil && s.deploy == p.wanted.template && !r.applyContent(ctx, p) {
		// Viewers whose content is missing would never start.
		p.wanted, p.rollout.desired = nil, ""
		s = p.rollout.next()
	}
	r.applyDeployment(ctx, p, s)
	r.applyService(ctx, p, s)
	for _, c := range others(p.permitted) {
		c.keepPath = p.behind()
		p.failed(ctx, r.ensure(ctx, p, c), false)
	}
	r.applyRoute(ctx, p)
	if s.prune && p.wanted != nil {
		r.prune(ctx, p)
	}
}

// applyContent applies the ConfigMaps of the wanted content, and reports whether all of
// them exist.
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
		want = children.Deployment(p.permitted, p.wanted.pods, s.hold)
	} else {
		// The deployed template is kept for now, and is read from the Deployment, because
		// the spec no longer describes it.
		applied, err := appsv1ac.ExtractDeployment(p.deployment, children.Owner)
		if err != nil || applied.Spec == nil || applied.Spec.Template == nil {
			return
		}
		want = children.Deployment(p.permitted, applied.Spec.Template, s.hold)
	}
	p.failed(ctx, r.ensure(ctx, p, deployment(children.ViewerName(p.view.Name), want)), true)
}

func (r *Reconciler) applyService(ctx context.Context, p *pass, s step) {
	if s.sel == "" || s.sel == unlabelled {
		return
	}
	want := children.Service(p.permitted, p.contents[s.sel], s.sel)
	failed := p.failed(ctx, r.ensure(ctx, p, service(children.ViewerName(p.view.Name), want)), true)
	if !failed && p.rollout.selected != "" && s.sel != p.rollout.selected {
		r.switched(p, s.sel)
	}
}

// behind reports whether readers still get viewers of an older spec. The viewers of an
// older spec may serve another path, so the route must keep leading to that path.
func (p *pass) behind() bool {
	return p.rollout.selected != "" && p.rollout.selected != p.rollout.desired
}

// applyRoute applies the HTTPRoute, in clusters with the Gateway API.
func (r *Reconciler) applyRoute(ctx context.Context, p *pass) {
	c := httpRoute(p.permitted)
	c.keepPath = p.behind()
	known, err := r.routes.known()
	switch {
	case err != nil && c.want == nil:
		p.retry = append(p.retry, err)
	case err != nil:
		p.readFailed(err, false)
	case known:
		p.failed(ctx, r.ensure(ctx, p, c), false)
	case c.want != nil:
		p.trouble(trouble{reason: viewv1.ReasonGatewayAPIMissing,
			message: "the cluster does not have the kind HTTPRoute (gateway.networking.k8s.io/v1): install the Gateway API, or use ingress"})
		p.lookAgain(refusalRetry)
	}
}

// prune deletes content that viewers no longer use.
func (r *Reconciler) prune(ctx context.Context, p *pass) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
	err := r.client.List(ctx, &list, client.InNamespace(p.view.Namespace),
		client.MatchingLabelsSelector{Selector: children.Selector(p.view.Name)})
	if err != nil {
		p.readFailed(fmt.Errorf("listing the ConfigMaps: %w", err), false)
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

// resources maps the kinds of children to their resources.
var resources = map[string]schema.GroupVersionResource{
	"ConfigMap":           {Version: "v1", Resource: "configmaps"},
	"Service":             {Version: "v1", Resource: "services"},
	"Deployment":          {Group: "apps", Version: "v1", Resource: "deployments"},
	"PodDisruptionBudget": {Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	"NetworkPolicy":       {Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"},
	"Ingress":             {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	"HTTPRoute":           {Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"},
}

// watchNames watches objects that are not in the cache: the ConfigMaps that the spec names,
// and foreign objects that have the name of a child.
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
