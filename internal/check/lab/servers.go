package lab

import (
	"context"
	"net/url"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
)

// servers manages the external endpoints, each behind a proxy. The controller gets the
// address of the proxy; the commands of the scenario get the address of the server.
type servers struct {
	running   *scenario.Servers
	proxies   map[string]*apiproxy.Endpoint
	endpoints []scenario.Endpoint
}

func startServers(ctx context.Context, r *run) (*servers, error) {
	s := &servers{proxies: map[string]*apiproxy.Endpoint{}, endpoints: r.scenario.Endpoints}
	err := r.lab.makeHomes()
	if err != nil || len(s.endpoints) == 0 {
		r.lab.processes.use(r.scenario, nil)
		return s, err
	}
	if s.running, err = scenario.StartEndpoints(ctx, s.endpoints, r.lab.endpointHome()); err != nil {
		return s, err
	}
	for name, address := range s.running.URLs() {
		target, err := url.Parse(address)
		if err == nil {
			s.proxies[name], err = apiproxy.StartEndpoint(ctx, apiproxy.EndpointConfig{
				Name: name, Target: target, Instance: "controller", Log: r.log, Decider: r.decider(),
			})
		}
		if err != nil {
			s.stop()
			return s, err
		}
	}
	r.lab.processes.use(r.scenario, s.urls())
	return s, nil
}

func (s *servers) stop() {
	if s == nil {
		return
	}
	for _, p := range s.proxies {
		if p != nil {
			p.Stop()
		}
	}
	if s.running != nil {
		_ = s.running.Stop()
	}
}

// urls returns the addresses of the proxies, for the controller and for manifests.
func (s *servers) urls() map[string]string {
	urls := map[string]string{}
	for name, p := range s.proxies {
		urls[name] = p.URL().String()
	}
	return urls
}

// environment returns the environment variables of the endpoints, as NAME=URL. If direct is set,
// these are the URLs of the servers, which commands use. Otherwise, these are the URLs of the
// proxies, which the controller uses.
func (s *servers) environment(direct bool) []string {
	urls := s.urls()
	if direct && s.running != nil {
		urls = s.running.URLs()
	}
	values := map[string]string{}
	for _, e := range s.endpoints {
		if e.Env != "" {
			values[e.Env] = urls[e.Name]
		}
	}
	return environ(values)
}
