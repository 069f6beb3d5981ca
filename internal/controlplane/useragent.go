package controlplane

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
)

// client-go takes the first part of a User-Agent from the program's file name,
// and the API server records that part as the manager in managedFields. Our own
// name there would tell a client wrongly who wrote what.

// claimUserAgent gives the process the name of the component that makes the
// most clients in places we cannot reach: kube-controller-manager makes one
// per controller. The others rename theirs with speakAs.
func claimUserAgent() {
	if os.Args[0] != managerName {
		os.Args[0] = managerName
	}
}

// speakAs returns a copy of c that names itself after an upstream component.
func speakAs(component string, c *rest.Config) *rest.Config {
	program := filepath.Base(os.Args[0])
	rename := func(agent string) string {
		if rest, ok := strings.CutPrefix(agent, program+"/"); ok {
			return component + "/" + rest
		}
		return agent
	}
	c = rest.CopyConfig(c)
	c.UserAgent = rename(rest.DefaultKubernetesUserAgent())
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			agent := r.Header.Get("User-Agent")
			if renamed := rename(agent); renamed != agent {
				r = r.Clone(r.Context())
				r.Header.Set("User-Agent", renamed)
			}
			return next.RoundTrip(r)
		})
	})
	return c
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
