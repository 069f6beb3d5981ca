package kubelet

import (
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestOnlyTheAPIServerIsServed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]authorizer.Decision{
		Client:              authorizer.DecisionAllow,
		"kubernetes-admin":  authorizer.DecisionDeny,
		"system:node:local": authorizer.DecisionDeny,
		"system:anonymous":  authorizer.DecisionDeny,
		"":                  authorizer.DecisionDeny,
	} {
		asker := authorizer.AttributesRecord{User: &user.DefaultInfo{Name: name, Groups: []string{"system:masters"}}}
		if got, _, err := only(Client).Authorize(t.Context(), asker); got != want || err != nil {
			t.Errorf("%q: %v, %v; want %v", name, got, err, want)
		}
	}
}
