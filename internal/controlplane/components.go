package controlplane

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/controlplane/credentials"
	"github.com/koboshi-dev/koboshi/internal/controlplane/useragent"
	"github.com/koboshi-dev/koboshi/internal/pki"
)

// identity issues a client certificate to a component, and writes a kubeconfig with the
// certificate, because upstream's options accept only the path of a kubeconfig.
func (p *Plane) identity(component string, subject pki.Request) (*rest.Config, string, error) {
	kubeconfig, err := credentials.Kubeconfig(p.ca, p.URL(), subject)
	if err != nil {
		return nil, "", err
	}
	path := p.certs.Path(component + ".conf")
	if err := credentials.WriteKubeconfig(path, kubeconfig); err != nil {
		return nil, "", err
	}
	client, err := credentials.RESTConfig(kubeconfig)
	if err != nil {
		return nil, "", err
	}
	return useragent.As(component, client), path, nil
}

// goComponent runs a component for the lifetime of the plane. An error of the
// component ends the plane.
func (p *Plane) goComponent(name string, run func(context.Context) error) {
	p.tasks.run(func(ctx context.Context) error {
		if err := run(ctx); err != nil {
			return p.named(name, err)
		}
		if ctx.Err() == nil {
			return p.named(name, errors.New("ended unexpectedly"))
		}
		return nil
	})
}

// named adds the component's name and its log file to an error.
func (p *Plane) named(component string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w (log: %s)", component, err, p.logs.Path(component))
}
