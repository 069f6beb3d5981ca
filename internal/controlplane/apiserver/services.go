package apiserver

import (
	"errors"
	"net/url"

	"k8s.io/apiserver/pkg/util/webhook"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// WebhookAddress returns the address, as host:port, at which the server calls the webhooks, or the aggregated
// API, of a Service's port. It reports false for a Service that the server resolves as upstream does.
type WebhookAddress func(namespace, name string, port int32) (address string, ok bool)

// services resolves the Services of webhooks.
type services struct {
	address  WebhookAddress
	upstream webhook.ServiceResolver
}

func (s *services) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	if address, ok := s.address(namespace, name, port); ok {
		return &url.URL{Scheme: "https", Host: address}, nil
	}
	return s.upstream.ResolveEndpoint(namespace, name, port)
}

// divert makes upstream's functions use address for the Services of webhooks, until restore is called.
// Upstream has no other way to replace the resolver of admission webhooks, and its own integration tests
// use this one. Other Services are resolved like in upstream's buildServiceResolver.
func divert(address WebhookAddress, opts options.CompletedOptions, g *generic) (upstream webhook.ServiceResolver, restore func(), err error) {
	if opts.EnableAggregatorRouting {
		return nil, nil, errors.New("the Services of webhooks cannot be diverted with --enable-aggregator-routing")
	}
	host, err := url.Parse(g.LoopbackClientConfig.Host)
	if err != nil {
		return nil, nil, err
	}
	lister := g.informers.Core().V1().Services().Lister()
	upstream = aggregatorapiserver.NewLoopbackServiceResolver(aggregatorapiserver.NewClusterIPServiceResolver(lister), host)
	return upstream, app.SetServiceResolverForTests(&services{address, upstream}), nil
}
