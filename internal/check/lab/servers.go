package lab

import (
	"context"
	"net/url"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// servers are the endpoints outside the cluster, each with a proxy before it. The
// controller knows the proxies, and the one who tests the servers.
type servers struct {
	running *scenario.Servers
	proxies map[string]*apiproxy.Endpoint
	of      []scenario.Endpoint
}

func startServers(ctx context.Context, r *run) (*servers, error) {
	s := &servers{proxies: map[string]*apiproxy.Endpoint{}, of: r.scenario.Endpoints}
	if len(s.of) == 0 {
		return s, nil
	}
	var err error
	if s.running, err = scenario.StartEndpoints(ctx, s.of); err != nil {
		return s, err
	}
	for name, address := range s.running.URLs() {
		target, err := url.Parse(address)
		if err == nil {
			s.proxies[name], err = apiproxy.StartEndpoint(ctx, apiproxy.EndpointConfig{
				Name: name, Target: target, Instance: "controller", Log: r.log, Decider: deciderLater{r},
			})
		}
		if err != nil {
			s.stop()
			return s, err
		}
	}
	return s, nil
}

// deciderLater asks whoever decides by the time of a request.
type deciderLater struct{ run *run }

func (d deciderLater) Decide(call *trace.Call) apiproxy.Action {
	if decider := d.run.decider(); decider != nil {
		return decider.Decide(call)
	}
	return apiproxy.Action{}
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

// proxied is where the controller is told that the endpoints are; manifests say
// the same.
func (s *servers) proxied() map[string]string {
	urls := map[string]string{}
	for name, p := range s.proxies {
		urls[name] = p.URL().String()
	}
	return urls
}

// environment is that of the controller, which goes through the proxies, or of
// commands, which do not.
func (s *servers) environment(direct bool) []string {
	urls := s.proxied()
	if direct && s.running != nil {
		urls = s.running.URLs()
	}
	values := map[string]string{}
	for _, e := range s.of {
		if e.Env != "" {
			values[e.Env] = urls[e.Name]
		}
	}
	return environ(values)
}
