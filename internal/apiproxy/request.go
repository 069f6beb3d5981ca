package apiproxy

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// asked is what a request to an API server is about.
type asked struct {
	verb   string
	target trace.Target
	query  url.Values
	// watch is one over plain HTTP; of one in a web socket nothing is known.
	watch bool
	// stream is what ends when somebody ends it: logs that are followed, and
	// connections through the API server. Nothing of it is kept.
	stream  bool
	upgrade bool
}

// understand follows upstream's RequestInfoFactory.
func understand(r *http.Request) asked {
	a := asked{verb: strings.ToLower(r.Method), upgrade: isUpgrade(r)}
	if r.URL.RawQuery != "" {
		a.query = r.URL.Query()
	}
	rest, isResource := a.group(r.URL.Path)
	if !isResource {
		a.stream = true
		return a
	}
	inPath := rest[0] == "watch" && len(rest) > 1 // deprecated, and still served
	if inPath {
		rest = rest[1:]
	}
	a.resource(rest)
	a.verb = a.resourceVerb(r.Method, inPath || isTrue(a.query, "watch"))
	a.watch = a.verb == "watch" && !a.upgrade
	switch a.target.Subresource {
	case "log":
		a.stream = isTrue(a.query, "follow")
	case "exec", "attach", "portforward", "proxy":
		a.stream = true
	}
	return a
}

// group reads the group and version, and returns the rest of the path.
func (a *asked) group(path string) (rest []string, isResource bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "api" && len(parts) > 2:
		a.target.Version = parts[1]
		return parts[2:], true
	case parts[0] == "apis" && len(parts) > 3:
		a.target.Group, a.target.Version = parts[1], parts[2]
		return parts[3:], true
	}
	return nil, false
}

func (a *asked) resource(rest []string) {
	t := &a.target
	ofNamespace := len(rest) > 2 && t.Group == "" && (rest[2] == "status" || rest[2] == "finalize")
	if rest[0] == "namespaces" && len(rest) > 2 && !ofNamespace {
		t.Namespace, rest = rest[1], rest[2:]
	}
	t.Resource = rest[0]
	if len(rest) > 1 {
		t.Name = rest[1]
	}
	if len(rest) > 2 {
		t.Subresource = rest[2]
	}
}

func (a *asked) resourceVerb(method string, watch bool) string {
	named := a.target.Name != ""
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if named {
			return "delete"
		}
		return "deletecollection"
	case http.MethodGet, http.MethodHead:
		if named && !watch {
			return "get"
		}
		// A list of what has one name is about that object; RBAC sees it so.
		for _, part := range strings.Split(a.query.Get("fieldSelector"), ",") {
			if name, ok := strings.CutPrefix(part, "metadata.name="); ok {
				a.target.Name = strings.TrimPrefix(name, "=")
			}
		}
		if watch {
			return "watch"
		}
		return "list"
	}
	return strings.ToLower(method)
}

// endless reports whether the request lasts until somebody ends it.
func (a *asked) endless() bool {
	return a.watch || a.upgrade || a.stream && a.target.Resource != ""
}

// writes reports whether the request has a body that is worth keeping.
func (a *asked) writes() bool {
	if a.stream || a.upgrade {
		return false
	}
	switch a.verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// isTrue reads a parameter as Kubernetes does: all but "false" and "0" is true.
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

// credentials are parameters that let anyone in who reads them.
var credentials = []string{"x-amz-signature", "x-amz-security-token", "x-amz-credential", "access_token", "token", "sig", "signature"}

// tracePath is the path as a trace may show it.
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
