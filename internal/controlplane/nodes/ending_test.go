package nodes

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// script expects requests in the order of its steps and answers them. Any other request fails the
// test.
type script struct {
	*testing.T
	steps []exchange
}

type exchange struct {
	method, contains string // of the request and its body
	code             int
	body             string
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.Helper()
	if len(s.steps) == 0 {
		s.Fatalf("one request too many: %s %s", r.Method, r.URL)
	}
	step := s.steps[0]
	s.steps = s.steps[1:]
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	if r.Method != step.method || !strings.Contains(string(body), step.contains) {
		s.Errorf("the request is %s %s, want %s with %q", r.Method, body, step.method, step.contains)
	}
	return &http.Response{StatusCode: step.code, Body: io.NopCloser(strings.NewReader(step.body))}, nil
}

func TestAPodIsEndedOnlyWhileItIsEnding(t *testing.T) {
	const (
		pod    = "/api/v1/namespaces/base/pods/web-1"
		alive  = `{"metadata":{"resourceVersion":"7"}}`
		ending = `{"metadata":{"resourceVersion":"8","deletionTimestamp":"2026-01-01T00:00:00Z"}}`
		later  = `{"metadata":{"resourceVersion":"9","deletionTimestamp":"2026-01-01T00:00:00Z"}}`
	)
	for name, c := range map[string]struct {
		path  string
		steps []exchange
		want  int
	}{
		"one that is ending goes": {pod, []exchange{
			{"GET", "", 200, ending}, {"DELETE", `"resourceVersion":"8"`, 200, "{}"}}, 200},
		"one that a reset has brought back stays": {pod, []exchange{{"GET", "", 200, alive}}, 404},
		"one that is gone is gone":                {pod, []exchange{{"GET", "", 404, "{}"}}, 404},
		"one that changed is looked at again": {pod, []exchange{
			{"GET", "", 200, ending}, {"DELETE", `"8"`, 409, "{}"},
			{"GET", "", 200, later}, {"DELETE", `"9"`, 200, "{}"}}, 200},
		"a Pod that has come back stays": {pod, []exchange{
			{"GET", "", 200, ending}, {"DELETE", `"8"`, 409, "{}"}, {"GET", "", 200, alive}}, 404},
		"what is no pod is left to the server": {"/api/v1/nodes/node-1", []exchange{{"DELETE", "given", 200, "{}"}}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{T: t, steps: c.steps}
			request, err := http.NewRequest(http.MethodDelete, "http://plane"+c.path, bytes.NewReader([]byte("given")))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := endings{s}.RoundTrip(request)
			if err != nil || answer.StatusCode != c.want || len(s.steps) > 0 {
				t.Errorf("the answer is %v, %v, want %d; %d requests are missing", answer, err, c.want, len(s.steps))
			}
		})
	}
}
