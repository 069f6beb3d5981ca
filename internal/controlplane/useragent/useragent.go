// Package useragent makes each component use its own name as a client.
//
// client-go takes the first part of a User-Agent from the file name of the
// program, and the API server records that part as the manager in
// managedFields. If the name were koboshi for all components, managedFields
// would name the wrong manager.
package useragent

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/kubeversion"
)

// Claim gives the process the name of component. Call Claim for the component that creates the most
// clients in code that we cannot change. Other components rename their clients with As.
func Claim(component string) {
	if os.Args[0] != component {
		os.Args[0] = component
	}
}

// Of returns the user agent of the upstream component with that name.
func Of(component string) string {
	return component + "/v" + kubeversion.Version + " (" + runtime.GOOS + "/" + runtime.GOARCH + ")"
}

// As returns a copy of c with the user agent of an upstream component.
func As(component string, c *rest.Config) *rest.Config {
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
