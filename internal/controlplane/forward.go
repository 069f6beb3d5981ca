package controlplane

import (
	"context"

	"k8s.io/client-go/kubernetes"

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
		return forwarding.Run(ctx, forwarding.Config{Client: client, Node: nodes.Local, Reachable: p.opts.Reachable, Log: clog.Slog(log)})
	})
	return nil
}
