package judge

import (
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
)

const (
	bareNode    = `Node n {"metadata":{"labels":{"kubernetes.io/os":"linux"}},"status":{"heartbeat":"1"}}`
	beatingNode = `Node n {"metadata":{"labels":{"kubernetes.io/os":"linux"}},"status":{"heartbeat":"2"}}`
	labelled    = `Node n {"metadata":{"labels":{"kubernetes.io/os":"linux","example.com/gpu":"yes"}},"status":{"heartbeat":"1"}}`
	wrong       = `Node n {"metadata":{"labels":{"kubernetes.io/os":"linux","example.com/gpu":"no"}},"status":{"heartbeat":"1"}}`
	slice       = `EndpointSlice.discovery.k8s.io default/s {"endpoints":[{"addresses":["10.0.0.1"]}]}`
	otherSlice  = `EndpointSlice.discovery.k8s.io default/s {"endpoints":[]}`
	foreign1    = `EndpointSlice.discovery.k8s.io default/upstream {"endpoints":[]}`
)

func TestWhatTheClusterMaintainsIsComparedWhereTheControllerWritesIt(t *testing.T) {
	learnt := reference(t, scene(), func(s *story) {
		s.puts(driver, bareNode).step("create").puts(driver, widget).puts(driver, foreign1).puts(one, labelled).puts(one, slice)
	})
	for name, tt := range map[string]struct {
		story func(s *story)
		want  string
	}{
		"the label and the slice are there": {func(s *story) { s.puts(one, labelled).puts(one, slice) }, ""},
		"the cluster writes the rest": {func(s *story) {
			s.puts(one, labelled).puts(one, slice).puts(driver, strings.Replace(labelled, `"1"`, `"7"`, 1))
		}, ""},
		"the cluster labels the Node as well": {func(s *story) {
			s.puts(one, slice).puts(one, strings.Replace(labelled, `"linux"`, `"linux","zone":"a"`, 1))
		}, ""},
		"the cluster's own slice is gone": {func(s *story) {
			s.puts(one, labelled).puts(one, slice).deletes(driver, "EndpointSlice.discovery.k8s.io default/upstream")
		}, ""},
		"another Node appears":                   {func(s *story) { s.puts(one, labelled).puts(one, slice).puts(driver, `Node m {}`) }, ""},
		"the label is missing":                   {func(s *story) { s.puts(one, slice) }, "Node n has no metadata.labels"},
		"the label is missing, with a heartbeat": {func(s *story) { s.puts(one, slice).puts(driver, beatingNode) }, "Node n has no metadata.labels"},
		"the label is wrong":                     {func(s *story) { s.puts(one, wrong).puts(one, slice) }, `Node n has metadata.labels[example.com/gpu] "no" instead of "yes"`},
		"the slice is missing":                   {func(s *story) { s.puts(one, labelled) }, "EndpointSlice.discovery.k8s.io default/s is missing"},
		"the slice is empty":                     {func(s *story) { s.puts(one, labelled).puts(one, otherSlice) }, "endpoints"},
		"the Node is gone":                       {func(s *story) { s.puts(one, slice).deletes(driver, "Node n") }, "Node n has no metadata.labels"},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t).puts(driver, bareNode).step("create").puts(driver, widget).puts(driver, foreign1)
			tt.story(s)
			if tt.want != "" {
				s.healed(evidence.Never)
			}
			got := Judge(learnt, s.after(do(fault.Restart, "create", "")), nil)
			switch {
			case tt.want == "" && len(got) == 0:
			case tt.want == "" || len(got) != 1 || got[0].Verdict != Diverged || !strings.Contains(got[0].Sentence, tt.want):
				t.Errorf("%s, want %q: %+v", verdicts(got), tt.want, got)
			}
		})
	}
}
