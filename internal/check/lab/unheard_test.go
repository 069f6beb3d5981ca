package lab

import (
	"strings"
	"testing"
	"time"
)

func TestOnlyAControllerThatRunsAndAsksForNothingIsSilent(t *testing.T) {
	for name, test := range map[string]struct {
		a    activity
		want bool
	}{
		"runs":                  {activity{instances: 1, unheard: 1}, true},
		"has asked":             {activity{instances: 1}, false},
		"one of two has asked":  {activity{instances: 2, unheard: 1}, false},
		"is being started":      {activity{instances: 1, unheard: 1, starting: true}, false},
		"has exited before":     {activity{instances: 1, unheard: 1, exits: 1}, false},
		"is stopped on purpose": {activity{}, false},
	} {
		if test.a.silent() != test.want {
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
