package lab

import (
	"strings"
	"testing"
	"time"

	"github.com/koboshi-dev/koboshi/internal/check/lab/instance"
)

func TestOnlyAControllerThatRunsAndAsksForNothingIsSilent(t *testing.T) {
	for name, test := range map[string]struct {
		a    instance.Activity
		want bool
	}{
		"runs":                  {instance.Activity{Instances: 1, Unheard: 1}, true},
		"has asked":             {instance.Activity{Instances: 1}, false},
		"one of two has asked":  {instance.Activity{Instances: 2, Unheard: 1}, false},
		"is being started":      {instance.Activity{Instances: 1, Unheard: 1, Starting: true}, false},
		"has exited before":     {instance.Activity{Instances: 1, Unheard: 1, Exits: 1}, false},
		"is stopped on purpose": {instance.Activity{}, false},
	} {
		if silent(&test.a) != test.want {
			t.Errorf("%s: silent is %t", name, !test.want)
		}
	}
}

func TestASilentControllerIsToldHowToFindTheCluster(t *testing.T) {
	const find = "; the program must find the cluster through KUBECONFIG, ~/.kube/config or in-cluster configuration"
	for want, e := range map[string]*UnheardError{
		"no request reached the control plane from ships within 20s" + find:                                                   {Name: "ships"},
		"no request reached the control plane from the controller within 20s" + find:                                          {},
		`no request reached the control plane from ships within 20s, whose last line of output is "dialling 10.0.0.1"` + find: {Name: "ships", Said: "dialling 10.0.0.1"},
		"no request reached the control plane from ships within 20s" + find + "; the system forbids it":                       {Name: "ships", Hint: "the system forbids it"},
	} {
		e.Within = 20 * time.Second
		if got := e.Error(); got != want || strings.Contains(got, "\n") {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
