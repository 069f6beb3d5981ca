package controller

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	networkingv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1ac "sigs.k8s.io/gateway-api/applyconfiguration/apis/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

// routes watches HTTPRoutes as soon as the cluster has that kind.
type routes struct {
	mapper     meta.RESTMapper
	cache      cache.Cache
	controller controller.Controller
	scheme     *runtime.Scheme

	mu       sync.Mutex
	watching bool
}

// leadsElsewhere reports whether the paths of the applied route and the wanted route
// differ.
func leadsElsewhere(applied, want runtime.ApplyConfiguration) bool {
	was := pathOf(applied)
	return was != "" && was != pathOf(want)
}

// pathOf returns the path of a route, or "" if the object has no path or is not a route.
func pathOf(route runtime.ApplyConfiguration) string {
	switch r := route.(type) {
	case *networkingv1ac.IngressApplyConfiguration:
		if r.Spec == nil || len(r.Spec.Rules) == 0 || r.Spec.Rules[0].HTTP == nil || len(r.Spec.Rules[0].HTTP.Paths) == 0 {
			return ""
		}
		return ptr.Deref(r.Spec.Rules[0].HTTP.Paths[0].Path, "")
	case *gatewayv1ac.HTTPRouteApplyConfiguration:
		if r.Spec == nil || len(r.Spec.Rules) == 0 || len(r.Spec.Rules[0].Matches) == 0 || r.Spec.Rules[0].Matches[0].Path == nil {
			return ""
		}
		return ptr.Deref(r.Spec.Rules[0].Matches[0].Path.Value, "")
	default:
		return ""
	}
}

// known reports whether the cluster has the kind HTTPRoute, and starts the watch when it first
// finds this kind.
func (r *routes) known() (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.watching {
		return true, nil
	}
	_, err := r.mapper.RESTMapping(schema.GroupKind{Group: gatewayv1.GroupName, Kind: "HTTPRoute"}, gatewayv1.GroupVersion.Version)
	if meta.IsNoMatchError(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking for the kind HTTPRoute: %w", err)
	}
	err = r.controller.Watch(source.Kind(r.cache, &gatewayv1.HTTPRoute{},
		handler.TypedEnqueueRequestForOwner[*gatewayv1.HTTPRoute](r.scheme, r.mapper, &viewv1.MarkdownView{}, handler.OnlyControllerOwner())))
	if err != nil {
		return false, fmt.Errorf("watching HTTPRoutes: %w", err)
	}
	r.watching = true
	return true, nil
}
