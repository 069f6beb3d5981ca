package lab

import (
	"maps"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/controlplane/nodes"
)

func TestSimulatedPodsAnswerAsTheCurrentScenarioSays(t *testing.T) {
	p := &processes{}
	if _, ok := p.Command(nodes.Container{Pod: "a"}, []string{"true"}); ok || len(p.Ports("default", "a")) > 0 {
		t.Error("a Pod answered before there was a scenario")
	}
	s := &scenario.Scenario{Pods: []scenario.PodAnswers{{
		Name: "a", Exec: []scenario.ExecAnswer{{Command: []string{"true"}, Stdout: "yes", ExitCode: 4}},
		Ports: []scenario.PodPort{{Port: 80, Endpoint: "web"}, {Port: 81, Endpoint: "gone"}},
	}}}
	p.use(s, map[string]string{"web": "http://127.0.0.1:1234/path"})
	if got, ok := p.Command(nodes.Container{Pod: "a"}, []string{"true"}); !ok || got != (nodes.Result{Stdout: "yes", ExitCode: 4}) {
		t.Errorf("%+v, %t", got, ok)
	}
	if got := p.Ports("default", "a"); !maps.Equal(got, map[int32]string{80: "127.0.0.1:1234"}) {
		t.Errorf("%v", got)
	}
	p.use(&scenario.Scenario{}, nil)
	if _, ok := p.Command(nodes.Container{Pod: "a"}, []string{"true"}); ok {
		t.Error("a Pod answers as in the run before")
	}
}
