package lab

import (
	"net/url"
	"sync"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/controlplane/nodes"
)

// processes answers for the processes of simulated Pods, as the scenario of the current run
// declares.
type processes struct {
	mu       sync.Mutex
	scenario *scenario.Scenario
	urls     map[string]string // of the endpoints
}

// use changes the scenario and the addresses of its endpoints.
func (p *processes) use(s *scenario.Scenario, urls map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scenario, p.urls = s, urls
}

// Command implements nodes.Processes.
func (p *processes) Command(c nodes.Container, argv []string) (nodes.Result, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.scenario == nil {
		return nodes.Result{}, false
	}
	answer, ok := p.scenario.Executed(c.Namespace, c.Pod, c.Name, argv)
	return nodes.Result{Stdout: answer.Stdout, Stderr: answer.Stderr, ExitCode: int(answer.ExitCode)}, ok
}

// Ports implements nodes.Processes.
func (p *processes) Ports(namespace, pod string) map[int32]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.scenario == nil {
		return nil
	}
	addresses := map[int32]string{}
	for port, endpoint := range p.scenario.Forwarded(namespace, pod) {
		if address, err := url.Parse(p.urls[endpoint]); err == nil && address.Host != "" {
			addresses[port] = address.Host
		}
	}
	return addresses
}
