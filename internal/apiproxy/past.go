package apiproxy

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

// snapshot is an older state and one client's selection from it.
type snapshot struct {
	items           []json.RawMessage
	resourceVersion string
	labels          labels.Selector
	fields          fields.Selector
	namespace       string
	metadataOnly    bool
}

// pastOf returns the older state from which to answer a list request, or nil if the
// server should answer the request.
func (p *Proxy) pastOf(x *exchange) *snapshot {
	p.mu.Lock()
	match, list := p.past, p.list
	p.mu.Unlock()
	q, t := x.asked.query, x.asked.target
	if match == nil || list == nil || t.Subresource != "" || q.Get("continue") != "" || !match(t) {
		return nil
	}
	// A client accepts any state only if it sends resourceVersion=0.
	if q.Get("resourceVersion") != "0" || q.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact) {
		return nil
	}
	s := &snapshot{namespace: t.Namespace}
	accept := x.r.Header.Get("Accept")
	switch {
	case strings.Contains(accept, "as=PartialObjectMetadataList"):
		s.metadataOnly = true
	case strings.Contains(accept, "as="), accept != "" && !strings.Contains(accept, typeJSON) && !strings.Contains(accept, "*/*"):
		return nil
	}
	var err error
	if s.labels, err = labels.Parse(q.Get("labelSelector")); err != nil {
		return nil
	}
	if s.fields, err = fields.ParseSelector(q.Get("fieldSelector")); err != nil {
		return nil
	}
	for _, r := range s.fields.Requirements() {
		if r.Field != "metadata.name" && r.Field != "metadata.namespace" {
			return nil
		}
	}
	s.items, s.resourceVersion = list(t)
	return s
}

// answerPast answers a list request from the older state. It still sends the request to
// the server, which checks whether the client may list. The kind of the list comes from
// the server's answer.
func (p *Proxy) answerPast(x *exchange, s *snapshot) {
	to := p.location(x.r.URL)
	q := url.Values{}
	for k, v := range x.asked.query {
		q[k] = v
	}
	q.Set("limit", "1")
	to.RawQuery = q.Encode()
	if !s.metadataOnly {
		x.r.Header.Set("Accept", typeJSON)
	} else {
		x.r.Header.Set("Accept", typeJSON+";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	}
	x.r.Header.Del("Accept-Encoding")
	resp, err := p.transport.RoundTrip(x.outgoing(x.r.Context(), to, p.upstream.url.Host))
	if err != nil {
		x.unreachable(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		x.relay(resp)
		return
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		x.fail("the response was cut off")
	}
	var head struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
	}
	if err := json.Unmarshal(body, &head); err != nil {
		x.fail("the server's list is not JSON")
	}
	x.sendPast(resp.Header, head.Kind, head.APIVersion, s)
}

func (x *exchange) sendPast(h http.Header, kind, apiVersion string, s *snapshot) {
	body, err := json.Marshal(map[string]any{
		"kind":       kind,
		"apiVersion": apiVersion,
		"metadata":   map[string]any{"resourceVersion": s.resourceVersion},
		"items":      s.selected(),
	})
	if err != nil {
		x.fail("an object in the older state is not JSON")
	}
	dropHopByHop(h)
	for k, v := range h {
		x.w.Header()[k] = v
	}
	x.w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	x.call.Code = http.StatusOK
	x.call.Injected = true
	x.call.ResourceVersion = s.resourceVersion
	x.call.ResponseSize = int64(len(body))
	x.call.RawResponse = trace.NewBody(body, typeJSON, "")
	x.recordCall()
	x.w.WriteHeader(http.StatusOK)
	_, _ = x.w.Write(body) // fails if the client has disconnected
}

// selected returns the items that match the client's request.
func (s *snapshot) selected() []json.RawMessage {
	items := []json.RawMessage{}
	for _, item := range s.items {
		var object struct {
			Metadata struct {
				Name      string            `json:"name"`
				Namespace string            `json:"namespace"`
				Labels    map[string]string `json:"labels"`
			} `json:"metadata"`
		}
		if json.Unmarshal(item, &object) != nil {
			continue
		}
		m := object.Metadata
		if s.namespace != "" && m.Namespace != s.namespace || !s.labels.Matches(labels.Set(m.Labels)) ||
			!s.fields.Matches(fields.Set{"metadata.name": m.Name, "metadata.namespace": m.Namespace}) {
			continue
		}
		if s.metadataOnly {
			item = metadataOf(item)
		}
		items = append(items, item)
	}
	return items
}

func metadataOf(item json.RawMessage) json.RawMessage {
	var object struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	_ = json.Unmarshal(item, &object) // cannot fail: selected has already parsed it
	out, _ := json.Marshal(map[string]any{
		"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object.Metadata,
	})
	return out
}
