package controller

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

// routes watches HTTPRoutes from the moment that the cluster knows them.
type routes struct {
	mapper     meta.RESTMapper
	cache      cache.Cache
	controller controller.Controller
	scheme     *runtime.Scheme

	mu       sync.Mutex
	watching bool
}

// known tells whether the cluster knows HTTPRoutes. When it is first asked while
// the cluster does, it begins to watch them.
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
		return false, fmt.Errorf("looking for HTTPRoutes: %w", err)
	}
	err = r.controller.Watch(source.Kind(r.cache, &gatewayv1.HTTPRoute{},
		handler.TypedEnqueueRequestForOwner[*gatewayv1.HTTPRoute](r.scheme, r.mapper, &viewv1.MarkdownView{}, handler.OnlyControllerOwner())))
	if err != nil {
		return false, fmt.Errorf("watching HTTPRoutes: %w", err)
	}
	r.watching = true
	return true, nil
}
