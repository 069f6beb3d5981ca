package controlplane

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"github.com/koboshi-dev/koboshi/internal/controlplane/apiserver"
	"github.com/koboshi-dev/koboshi/internal/controlplane/clog"
	"github.com/koboshi-dev/koboshi/internal/controlplane/forwarding"
	"github.com/koboshi-dev/koboshi/internal/controlplane/nodes"
	"github.com/koboshi-dev/koboshi/internal/pki"
)

// forwardingName is the name of the component that forwards connections to
// Services, and of its log file.
const forwardingName = "forwarding"

// startForwarding makes a Service reachable from this machine if its Pods run
// as programs.
func (p *Plane) startForwarding(context.Context) error {
	if len(p.opts.Programs) == 0 {
		return nil
	}
	log, err := p.logs.Open(forwardingName)
	if err != nil {
		return err
	}
	config, _, err := p.identity(forwardingName, pki.Request{CommonName: "koboshi:forwarding", Groups: []string{"system:masters"}})
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	p.goComponent(forwardingName, func(ctx context.Context) error {
		return forwarding.Run(ctx, forwarding.Config{Client: client, Node: nodes.Local, Reachable: p.opts.Reachable, Addresses: &p.forwarded, Log: clog.Slog(log)})
	})
	return nil
}

// webhookAddress returns the function with which kube-apiserver finds webhooks and aggregated APIs that nothing
// in a plane routes to; nil if there are none.
func (p *Plane) webhookAddress() apiserver.WebhookAddress {
	given := p.opts.WebhookAddress
	if len(p.opts.Programs) == 0 {
		return given
	}
	return func(namespace, name string, port int32) (address string, ok bool) {
		if given != nil {
			address, ok = given(namespace, name, port)
		}
		if !ok {
			address, ok = p.forwarded.Of(namespace, name, port)
		}
		return address, ok
	}
}
