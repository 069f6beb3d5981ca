package apiproxy

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/google/go-cmp/cmp"

	classify "github.com/koboshi-dev/koboshi/internal/request"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

func TestRequestsAreUnderstoodAsRBACDoes(t *testing.T) {
	for _, c := range []struct{ request, want string }{
		{"GET /api/v1/pods", "list {v1 pods}"},
		{"GET /api/v1/namespaces/a/pods/b/log?follow=true", "get {v1 pods log a b}"},
		{"GET /api/v1/namespaces/a", "get {v1 namespaces a}"},
		{"PUT /api/v1/namespaces/a/finalize", "update {v1 namespaces finalize a}"},
		{"POST /apis/apps/v1/namespaces/a/deployments", "create {apps v1 deployments a}"},
		{"PATCH /apis/apps/v1/namespaces/a/deployments/b/status", "patch {apps v1 deployments status a b}"},
		{"DELETE /apis/apps/v1/namespaces/a/deployments", "deletecollection {apps v1 deployments a}"},
		{"DELETE /apis/x.io/v1/widgets/b", "delete {x.io v1 widgets b}"},
		{"GET /apis/x.io/v1/widgets?watch=1", "watch {x.io v1 widgets}"},
		{"GET /apis/x.io/v1/widgets?watch=false", "list {x.io v1 widgets}"},
		{"GET /apis/x.io/v1/widgets?watch=true&fieldSelector=metadata.name%3Db", "watch {x.io v1 widgets b}"},
		{"GET /api/v1/watch/namespaces/a/pods", "watch {v1 pods a}"},
		{"GET /api/v1/namespaces/a/pods/b?watch=true", "get {v1 pods a b}"},
		{"GET /apis/x.io/v1/widgets?watch", "watch {x.io v1 widgets}"},
		{"OPTIONS /api/v1/pods", "options {v1 pods}"},
		{"GET /api/v1/watch", "get {}"},
		{"GET /apis/apps/v1", "get {}"},
		{"GET /healthz", "get {}"},
	} {
		method, target, _ := strings.Cut(c.request, " ")
		a := understand(httptest.NewRequest(method, target, nil))
		parts := []string{a.target.Group, a.target.Version, a.target.Resource, a.target.Subresource, a.target.Namespace, a.target.Name}
		got := a.verb + " {" + strings.Join(strings.Fields(strings.Join(parts, " ")), " ") + "}"
		if got != c.want {
			t.Errorf("%s is understood as %s, want %s", c.request, got, c.want)
		}
	}
}

func TestCreateFromGenerateNameIsRecordedUnderTheNameItGot(t *testing.T) {
	a := newAPI(t)
	log := trace.NewLog(time.Now())
	_, c := through(t, a, func(c *Config) { c.Log = log })
	obj := configMap("", "1")
	obj.GenerateName = "gen-"
	made, err := clientset(t, c, true).CoreV1().ConfigMaps("default").Create(t.Context(), obj, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	call := log.Entries()[0].Call
	if call.Target.Name != made.Name || call.ResourceVersion != made.ResourceVersion {
		t.Errorf("recorded %s at %s, want %s at %s", call.Target.Name, call.ResourceVersion, made.Name, made.ResourceVersion)
	}
	request, err := call.RequestObject()
	if err != nil || request["kind"] != "ConfigMap" {
		t.Errorf("the request is %v, %v", request, err)
	}
}

func TestUnknownPathsPassByteForByteWithTrailers(t *testing.T) {
	bothProtocols(t, func(t *testing.T, wrap func(*rest.Config) *rest.Config) {
		a := newAPI(t)
		_, c := through(t, a, nil)
		transport, err := rest.TransportFor(wrap(c))
		if err != nil {
			t.Fatal(err)
		}
		const path = "/echo/a%2Fb//c?x=%7B%7D&y"
		sent := bytes.Repeat([]byte("all kinds of \x00 bytes "), 100_000)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.Host+path, io.NopCloser(bytes.NewReader(sent)))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := io.ReadAll(resp.Body)
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("%d bytes came back of %d, %v", len(got), len(sent), err)
		}
		if p := resp.Header.Get("X-Path"); p != path {
			t.Errorf("the server saw %s, want %s", p, path)
		}
		want := http.Header{"X-Sum": {fmt.Sprint(len(sent))}, "X-Late": {"yes"}}
		if diff := cmp.Diff(want, resp.Trailer); diff != "" {
			t.Errorf("trailer (-want +got):\n%s", diff)
		}
	})
}

func TestUpgradedConnectionsPassBothWays(t *testing.T) {
	a := newAPI(t)
	p, c := through(t, a, nil)
	conn, err := tls.Dial("tcp", p.address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /api/v1/namespaces/default/pods/one/exec?command=sh HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n", c.BearerToken)
	want := "hello both ways"
	got := make([]byte, 4096)
	n, err := conn.Read(got)
	if err != nil || !strings.HasPrefix(string(got[:n]), "HTTP/1.1 101") {
		t.Fatalf("the answer is %q, %v, want 101", got[:n], err)
	}
	_, _ = io.WriteString(conn, want)
	if _, err := io.ReadFull(conn, got[:len(want)]); err != nil || string(got[:len(want)]) != want {
		t.Errorf("%q came back, %v", got[:len(want)], err)
	}
}

func TestProxyThatStopsLeavesNothingOpen(t *testing.T) {
	a := newAPI(t)
	p, c := through(t, a, nil)
	w, err := clientset(t, c, false).CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Stop()
	for range w.ResultChan() {
	}
	if _, err := net.Dial("tcp", p.address); err == nil {
		t.Error("the proxy still listens")
	}
	p.Stop()
}

func TestEndpointKeepsWhatIsSigned(t *testing.T) {
	var seen *http.Request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen, body = r, nil
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	log := trace.NewLog(time.Now())
	e, err := StartEndpoint(t.Context(), EndpointConfig{Name: "s3", Target: target, Log: log, Instance: "controller-1"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	const path = `/bucket/a%2Bb%20c'(1)|^{}?list-type=2&prefix=a%2F&X-Amz-Signature=abc&flag`
	conn, err := net.Dial("tcp", e.URL().Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "PUT %s HTTP/1.1\r\nHost: bucket.s3.example\r\nAuthorization: AWS4-HMAC-SHA256 x\r\nX-Amz-Date: now\r\nContent-Length: 4\r\n\r\nbody", path)
	if line := make([]byte, 12); read(conn, line) != nil || string(line) != "HTTP/1.1 204" {
		t.Fatalf("the answer is %q", line)
	}
	if seen.RequestURI != path || seen.Host != "bucket.s3.example" || string(body) != "body" || seen.ContentLength != 4 {
		t.Errorf("the server saw %s of %s with %q, want the request as the client wrote it", seen.RequestURI, seen.Host, body)
	}
	want := http.Header{"Authorization": {"AWS4-HMAC-SHA256 x"}, "X-Amz-Date": {"now"}, "Content-Length": {"4"}}
	if diff := cmp.Diff(want, seen.Header); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	call := log.Entries()[0].Call
	if call.Endpoint != "s3" || call.Verb != "put" || call.Code != 204 || call.RequestSize != 4 || call.RawRequest.Len() != 0 {
		t.Errorf("recorded %+v", call)
	}
	if strings.Contains(call.Path, "abc") {
		t.Errorf("the signature is in the trace: %s", call.Path)
	}
}

func read(r io.Reader, into []byte) error {
	_, err := io.ReadFull(r, into)
	return err
}

func TestGateOfAControllerIsOneForItsEndpoints(t *testing.T) {
	served := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { served <- r.Method }))
	defer server.Close()
	target, _ := url.Parse(server.URL)
	p, _ := through(t, newAPI(t), nil)
	e, err := StartEndpoint(t.Context(), EndpointConfig{Name: "x", Target: target, With: p})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	p.gate.close()
	done := make(chan error, 1)
	go func() {
		resp, err := http.Get(e.URL().String())
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	until(t, p, func(a Activity) bool { return a.Waiting == 1 })
	if len(served) != 0 {
		t.Error("the endpoint forwards while the gate is shut")
	}
	p.gate.open()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestEndpointSpeaksS3ToWhoSignsForS3(t *testing.T) {
	target, _ := url.Parse("http://127.0.0.1:1")
	e, err := StartEndpoint(t.Context(), EndpointConfig{Name: "s3", Target: target, Decider: deciderFunc(func(*trace.Call) Action {
		return Action{Answer: status(503, "", "later"), RetryAfter: 7}
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Stop()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPut, e.URL().String()+"/b", nil)
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 x")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "7" || !strings.Contains(string(body), "<Code>SlowDown</Code>") {
		t.Errorf("the answer is %d %q", resp.StatusCode, body)
	}
}

func TestFirstRequestIsWhenTheFirstOneCame(t *testing.T) {
	p, c := through(t, newAPI(t), nil)
	if at := p.Activity().FirstRequest; !at.IsZero() {
		t.Errorf("before the first request, FirstRequest is %v", at)
	}
	maps := clientset(t, c, true).CoreV1().ConfigMaps("default")
	before := time.Now()
	_, _ = maps.List(t.Context(), metav1.ListOptions{})
	between := time.Now()
	_, _ = maps.List(t.Context(), metav1.ListOptions{})
	if a := p.Activity(); a.FirstRequest.Before(before) || a.FirstRequest.After(between) || !a.LastRequest.After(between) {
		t.Errorf("the activity is %+v after requests at %v and %v", a, before, between)
	}
}

func TestDiscoveryIsNoUseOfAResource(t *testing.T) {
	p, c := through(t, newAPI(t), nil)
	clients := clientset(t, c, true)
	_, _ = clients.Discovery().ServerGroups()
	_, _ = clients.Discovery().ServerResourcesForGroupVersion("apps/v1")
	_, _ = clients.Discovery().ServerVersion()
	if a := p.Activity(); a.FirstRequest.IsZero() || !a.FirstUse.IsZero() {
		t.Errorf("after discovery, the activity is %+v", a)
	}
	before := time.Now()
	_, _ = clients.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	if a := p.Activity(); a.FirstUse.Before(before) {
		t.Errorf("after a list, the activity is %+v", a)
	}
}

func TestWhoAsksForALeaseIsElectingAndDoesNotWriteByThat(t *testing.T) {
	p, c := through(t, newAPI(t), nil)
	clients := clientset(t, c, true)
	_ = clients.CoreV1().ConfigMaps("default").Delete(t.Context(), "one", metav1.DeleteOptions{})
	if a := p.Activity(); a.Electing || a.Writes != 1 {
		t.Errorf("after the write of a ConfigMap, the activity is %+v", a)
	}
	_ = clients.CoordinationV1().Leases("default").Delete(t.Context(), "leader", metav1.DeleteOptions{})
	if a := p.Activity(); !a.Electing || a.Writes != 1 || a.Requests != 2 {
		t.Errorf("after the write of a Lease, the activity is %+v", a)
	}
}

func TestEventsAndElectionRecordsAreNoWrites(t *testing.T) {
	p, c := through(t, newAPI(t), nil)
	core := clientset(t, c, true).CoreV1()
	_ = core.Events("default").Delete(t.Context(), "e", metav1.DeleteOptions{})
	if a := p.Activity(); a.Writes != 0 {
		t.Errorf("after the write of an Event, the activity is %+v", a)
	}
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "one", Annotations: map[string]string{classify.LeaderAnnotation: "{}"},
	}}
	_, _ = core.ConfigMaps("default").Update(t.Context(), record, metav1.UpdateOptions{})
	// The proxy corrects the counters before it stops counting the request as in flight.
	for a := p.Activity(); a.Writes != 0 || !a.Electing; a = p.Activity() {
		next := p.Changed()
		if a = p.Activity(); a.InFlight == 0 && (a.Writes != 0 || !a.Electing) {
			t.Fatalf("after the write of an election record, the activity is %+v", a)
		}
		if a.InFlight > 0 {
			<-next
		}
	}
	for range 2 {
		_, _ = core.ConfigMaps("default").Get(t.Context(), "one", metav1.GetOptions{})
	}
	if a := p.Activity(); !a.AskedAgain.IsZero() {
		t.Error("the poll of an election record counts as a round of polling")
	}
}

func TestACustomResourceCalledLeasesIsNoElection(t *testing.T) {
	p, c := through(t, newAPI(t), nil)
	transport, err := rest.TransportFor(c)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, method := range []string{http.MethodGet, http.MethodPut} {
			r, err := http.NewRequestWithContext(t.Context(), method, c.Host+"/apis/example.com/v1/namespaces/a/leases/b", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
	}
	if a := p.Activity(); a.Electing || a.Writes != 2 || a.AskedAgain.IsZero() {
		t.Errorf("after two reads and two writes, the activity is %+v", a)
	}
}

func TestHeadersThatConnectionNamesAreNotForwarded(t *testing.T) {
	seen := make(chan http.Header, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		w.Header().Set("Connection", "x-ours, X-Also-Ours")
		for _, name := range []string{"X-Ours", "X-Also-Ours", "X-Everybodys"} {
			w.Header().Set(name, "1")
		}
	}))
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	e, err := StartEndpoint(t.Context(), EndpointConfig{Name: "hops", Target: target})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.URL().String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Connection": {"X-Mine,te", " x-also-mine "}, "X-Mine": {"1"}, "X-Also-Mine": {"1"}, "X-Everybodys": {"1"}, "Te": {"trailers"}}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	for name, header := range map[string]http.Header{"the server": <-seen, "the client": resp.Header} {
		for _, dropped := range []string{"X-Mine", "X-Also-Mine", "X-Ours", "X-Also-Ours"} {
			if header.Get(dropped) != "" {
				t.Errorf("%s got %s", name, dropped)
			}
		}
		if header.Get("X-Everybodys") == "" {
			t.Errorf("%s did not get X-Everybodys", name)
		}
	}
}

func TestAskedAgainIsSinceWhenSomethingWasReadTwice(t *testing.T) {
	a := newAPI(t)
	a.put("one", "1")
	p, c := through(t, a, nil)
	maps := clientset(t, c, true).CoreV1().ConfigMaps("default")
	list := func(o metav1.ListOptions) {
		t.Helper()
		if _, err := maps.List(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	list(metav1.ListOptions{})
	if _, err := maps.Get(t.Context(), "one", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if at := p.Activity().AskedAgain; !at.IsZero() {
		t.Errorf("nothing was read twice, but AskedAgain is %v", at)
	}
	changed := time.Now()
	list(metav1.ListOptions{})
	if at := p.Activity().AskedAgain; at.IsZero() || at.After(changed) {
		t.Errorf("the first list was before the change, but AskedAgain is %v after the change", at.Sub(changed))
	}
	list(metav1.ListOptions{})
	if at := p.Activity().AskedAgain; !at.After(changed) {
		t.Errorf("both lists were after the change, but AskedAgain is %v before the change", changed.Sub(at))
	}
}
