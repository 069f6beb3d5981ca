package fleet

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestALabDoesNotUseAProxyForServices(t *testing.T) {
	for given, want := range map[string]string{
		"OTHER=x":             "NO_PROXY=.svc",
		"NO_PROXY=":           "NO_PROXY=.svc",
		"NO_PROXY=a.example":  "NO_PROXY=a.example,.svc",
		"no_proxy=.b.example": "NO_PROXY=.b.example,.svc",
	} {
		cmd := exec.Command("lab")
		cmd.Env = withoutProxy([]string{"HTTPS_PROXY=http://proxy.example:3128", given})
		got := slices.DeleteFunc(cmd.Environ(), func(entry string) bool { return !strings.HasPrefix(entry, "NO_PROXY=") })
		if !slices.Equal(got, []string{want}) {
			t.Errorf("%s: the lab gets %q, want %s", given, got, want)
		}
	}
}
