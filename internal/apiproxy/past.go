package apiproxy

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Past describes the older state that Proxy.Past shows for some resources.
type Past struct {
	// Resource reports whether a resource is shown in the older state.
	Resource func(trace.Target) bool
	// ResourceVersion is the version at which the resources are listed.
	ResourceVersion string
	// Shown is called after each list from the older state. Failed is called with the
	// reason if the server has no such list; the client then gets the current list.
	Shown  func()
	Failed func(reason string)
}

// pastOf returns the older state from which to answer a list request, or nil if the server
// answers the request itself. A client accepts any state only if it sends
// resourceVersion=0.
func (p *Proxy) pastOf(x *exchange) *Past {
	p.mu.Lock()
	past := p.past
	p.mu.Unlock()
	q, t := x.asked.query, x.asked.target
	if past == nil || t.Subresource != "" || q.Get("continue") != "" || !past.Resource(t) ||
		q.Get("resourceVersion") != "0" || q.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact) {
		return nil
	}
	return past
}

// listPast sends a list request for the older state to the server, and returns the server's own
// answer. The answer therefore has the version, the encoding and the selection of the client's
// request, and the server checks the client's permission. listPast returns nil if the server should
// answer the original request.
func (p *Proxy) listPast(x *exchange) *http.Response {
	past := p.pastOf(x)
	if past == nil {
		return nil
	}
	to := p.location(x.r.URL)
	to.RawQuery = past.query(x.asked.query).Encode()
	resp, err := p.transport.RoundTrip(x.outgoing(x.r.Context(), to, p.upstream.url.Host))
	switch {
	case err != nil && x.r.Context().Err() != nil:
		return nil // the client disconnected
	case err != nil:
		past.Failed(fmt.Sprintf("the list at resourceVersion %s failed: %v", past.ResourceVersion, err))
		return nil
	case resp.StatusCode != http.StatusOK:
		past.Failed(fmt.Sprintf("the API server has no list at resourceVersion %s: %s", past.ResourceVersion, refusal(resp)))
		return nil
	}
	x.call.Injected = true
	past.Shown()
	return resp
}

// query returns the client's query, changed to request exactly the older state. The result has no
// limit, because an API server ignores the limit of a list with resourceVersion=0.
func (p *Past) query(asked url.Values) url.Values {
	q := maps.Clone(asked)
	q.Set("resourceVersion", p.ResourceVersion)
	q.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	q.Del("limit")
	return q
}

// refusal returns the server's reason for refusing a request, and closes the answer.
func refusal(resp *http.Response) string {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return resp.Status
	}
	answer := trace.Call{RawResponse: trace.NewBody(body, resp.Header.Get("Content-Type"), resp.Header.Get("Content-Encoding"))}
	status, err := answer.ResponseObject()
	if message, _ := status["message"].(string); err == nil && message != "" {
		return message
	}
	return resp.Status
}
