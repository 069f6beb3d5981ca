package scenario

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/koboshi-dev/koboshi/internal/strictyaml"
)

// PodAnswers defines the answers of simulated Pods. A Pod for which no scenario defines answers
// refuses commands and connections.
type PodAnswers struct {
	// Namespace and Name select Pods; a * stands for any text. Empty means any Pod.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Container selects one container of the Pods; empty means each container.
	Container string       `json:"container,omitempty"`
	Exec      []ExecAnswer `json:"exec,omitempty"`
	Ports     []PodPort    `json:"ports,omitempty"`
}

// ExecAnswer is the result of a command in a container.
type ExecAnswer struct {
	// Command is the beginning of the command. In each word, a * stands for any text.
	Command  []string `json:"command"`
	Stdout   string   `json:"stdout,omitempty"`
	Stderr   string   `json:"stderr,omitempty"`
	ExitCode int32    `json:"exitCode,omitempty"`
}

// PodPort forwards a port of the Pods to an endpoint of the scenario.
type PodPort struct {
	Port     int32  `json:"port"`
	Endpoint string `json:"endpoint"`
}

// Executed returns the answer of a container to a command, and false if the scenario defines
// none. If several answers match, Executed returns the first one.
func (s *Scenario) Executed(namespace, pod, container string, command []string) (ExecAnswer, bool) {
	for _, p := range s.Pods {
		if !p.selects(namespace, pod) || p.Container != "" && p.Container != container {
			continue
		}
		for _, answer := range p.Exec {
			if answer.answers(command) {
				return answer, true
			}
		}
	}
	return ExecAnswer{}, false
}

// Forwarded returns the ports of a Pod that are forwarded, each with its endpoint.
func (s *Scenario) Forwarded(namespace, pod string) map[int32]string {
	ports := map[int32]string{}
	for _, p := range slices.Backward(s.Pods) { // so that the first one counts
		if !p.selects(namespace, pod) {
			continue
		}
		for _, forwarded := range slices.Backward(p.Ports) {
			ports[forwarded.Port] = forwarded.Endpoint
		}
	}
	return ports
}

func (p *PodAnswers) selects(namespace, pod string) bool {
	return (p.Namespace == "" || like(p.Namespace, namespace)) && (p.Name == "" || like(p.Name, pod))
}

func (a *ExecAnswer) answers(command []string) bool {
	if len(a.Command) > len(command) {
		return false
	}
	for i, word := range a.Command {
		if !like(word, command[i]) {
			return false
		}
	}
	return true
}

// like reports whether a text matches a pattern in which * stands for any text.
func like(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, parts[0])
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return ok && strings.HasSuffix(text, last)
}

// Complaints returns the mistakes in the answers. The parameter at is the path of the answers in
// the file. endpoints lists the endpoints that a port may name.
func (p PodAnswers) Complaints(at string, endpoints []string) []strictyaml.Complaint {
	c := &checker{endpoints: endpoints}
	c.pods(at, p)
	return c.found
}

func (c *checker) pods(at string, p PodAnswers) {
	if len(p.Exec)+len(p.Ports) == 0 {
		c.complain(at, "answers nothing; add exec or ports")
	}
	for i, answer := range p.Exec {
		here := fmt.Sprintf("%s.exec[%d]", at, i)
		c.command(here+".command", answer.Command)
		if answer.ExitCode < 0 || answer.ExitCode > 255 {
			c.complain(here+".exitCode", "%d is not between 0 and 255", answer.ExitCode)
		}
	}
	for i, port := range p.Ports {
		here := fmt.Sprintf("%s.ports[%d]", at, i)
		for _, wrong := range validation.IsValidPortNum(int(port.Port)) {
			c.complain(here+".port", "%d: %s", port.Port, wrong)
		}
		switch {
		case len(c.endpoints) == 0:
			c.complain(here+".endpoint", "there is no endpoint; write a scenario with the server under endpoints")
		case !slices.Contains(c.endpoints, port.Endpoint):
			c.complain(here+".endpoint", "%s: %s", port.Endpoint, strictyaml.Unknown("endpoint", port.Endpoint, c.endpoints))
		}
	}
}
