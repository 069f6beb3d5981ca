package inject

import (
	"context"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab/interference"
	"github.com/koboshi-dev/koboshi/internal/check/state"
)

// staleRestart restarts the controller against an API server that lags behind: a list
// with resourceVersion=0 returns an earlier state, and the watch that follows is delayed.
func (i *Injection) staleRestart(ctx context.Context) error {
	target, _ := fault.ParseResource(i.fault.Point.Resource)
	resource := schema.GroupVersionResource{Group: target.Group, Resource: target.Resource}
	kind, err := i.config.Cluster.Mapper.KindFor(resource)
	if err != nil {
		return err
	}
	version, err := earlier(i.config.Store.History(), kind.GroupKind(), i.fault.Revision)
	if err != nil {
		return err
	}
	if err := Listable(ctx, i.config.Cluster, resource, version); err != nil {
		return err
	}
	shown := make(chan struct{}, 1)
	past := &apiproxy.Past{
		Resource: ofType(target), ResourceVersion: version, Failed: i.refuse,
		Shown: func() {
			select {
			case shown <- struct{}{}:
			default:
			}
		},
	}
	c := i.controller
	c.Prepare(func(p *apiproxy.Proxy) {
		p.Past(past)
		p.Hold(ofType(target))
	})
	i.keep(i.fault.Point.Step, func() {
		c.Prepare(nil)
		c.Proxies(func(p *apiproxy.Proxy) {
			p.Past(nil)
			p.Release()
		})
		if len(shown) == 0 {
			i.refuse(fmt.Sprintf("after the restart, the controller did not list %s with resourceVersion=0", i.fault.Point.Type()))
		}
	})
	c.KillAndStart()
	return nil
}

// Listable checks that the API server still has the list of a resource at a version. The server
// loses this list when etcd compacts its history, as an API server requests every five minutes.
func Listable(ctx context.Context, c interference.Client, resource schema.GroupVersionResource, version string) error {
	served, err := c.Mapper.ResourceFor(resource)
	if err != nil {
		return err
	}
	_, err = c.Dynamic.Resource(served).List(ctx, metav1.ListOptions{
		ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact, Limit: 1,
	})
	if err != nil {
		return fmt.Errorf("the API server has no list of %s at resourceVersion %s: %w", resource.GroupResource(), version, err)
	}
	return nil
}

// earlier returns the version of the change with the given number among the changes to objects of a
// kind, counted from 0.
func earlier(history state.History, kind schema.GroupKind, number int) (version string, err error) {
	n := 0
	for _, change := range history.Changes {
		if change.Ref.GroupKind != kind {
			continue
		}
		if n == number {
			return strconv.FormatInt(change.Revision, 10), nil
		}
		n++
	}
	return "", fmt.Errorf("this run has only %d changes to %s, but the fault needs %d", n, kind, number+1)
}
