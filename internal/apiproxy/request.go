package apiproxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	classify "github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// asked describes a request to an API server.
type asked struct {
	verb   string
	target trace.Target
	query  url.Values
	// watch reports whether the request is a watch over plain HTTP, not over a web socket.
	// Data that passes through a web socket is not read.
	watch bool
	// stream reports whether the request lasts until one side ends it, as with a followed
	// log or a connection through the API server. No data of such a request is kept.
	stream  bool
	upgrade bool
}

// requests is configured like the RequestInfo factory of the API server (see
// DefaultLegacyAPIPrefix).
var requests = request.RequestInfoFactory{
	APIPrefixes:          sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api"),
}

// understand parses a request with upstream's code, so that a trace names the same verbs
// and resources as RBAC.
func understand(r *http.Request) asked {
	a := asked{verb: strings.ToLower(r.Method), upgrade: isUpgrade(r)}
	if r.URL.RawQuery != "" {
		a.query = r.URL.Query()
	}
	info, err := requests.NewRequestInfo(r)
	if err != nil || !info.IsResourceRequest {
		a.stream = true
		return a
	}
	a.target = trace.Target{
		Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource, Subresource: info.Subresource,
		Namespace: info.Namespace, Name: info.Name,
	}
	if a.target.Resource == "namespaces" {
		a.target.Namespace = "" // a Namespace is not in a namespace
	}
	if info.Verb != "" {
		a.verb = info.Verb
	}
	a.watch = a.verb == "watch" && !a.upgrade
	switch {
	case a.verb == "proxy": // the deprecated form with the verb in the path
		a.stream = true
	case a.target.Subresource == "log":
		a.stream = isTrue(a.query, "follow")
	case slices.Contains([]string{"exec", "attach", "portforward", "proxy"}, a.target.Subresource):
		a.stream = true
	}
	return a
}

// endless reports whether the request lasts until one side ends it.
func (a *asked) endless() bool {
	return a.watch || a.upgrade || a.stream && a.target.Resource != ""
}

// writes reports whether the request has a body that is worth keeping.
func (a *asked) writes() bool {
	return !a.stream && !a.upgrade && classify.IsWriteVerb(a.verb)
}

// isTrue reads a parameter as Kubernetes does: everything but "false" and "0" is true.
func isTrue(q url.Values, name string) bool {
	v, ok := q[name]
	return ok && len(v) > 0 && v[0] != "false" && v[0] != "0"
}

func isUpgrade(r *http.Request) bool {
	if r.Header.Get("Upgrade") == "" {
		return false
	}
	for _, v := range r.Header["Connection"] {
		if strings.Contains(strings.ToLower(v), "upgrade") {
			return true
		}
	}
	return false
}

// credentials lists the query parameters whose values must not be shown.
var credentials = []string{"x-amz-signature", "x-amz-security-token", "x-amz-credential", "access_token", "token", "sig", "signature"}

// tracePath returns the path and the query without credentials.
func tracePath(u *url.URL) string {
	path, query, found := strings.Cut(u.RequestURI(), "?")
	if !found {
		return path
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, _, _ := strings.Cut(part, "=")
		for _, c := range credentials {
			if strings.EqualFold(name, c) {
				parts[i] = name + "=redacted"
			}
		}
	}
	return path + "?" + strings.Join(parts, "&")
}
