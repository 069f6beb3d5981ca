package nodes

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Like a kubelet, endings removes a Pod only while the Pod is terminating. The
// stage engine deletes a Pod by name, some time after it has read the Pod; in
// the meantime, a Reset may have restored the Pod, or another Pod may have
// taken the name.
type endings struct{ next http.RoundTripper }

func (e endings) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodDelete || !isPod(r.URL.Path) {
		return e.next.RoundTrip(r)
	}
	for {
		pod, missing, err := e.look(r)
		if missing != nil || err != nil {
			return missing, err
		}
		if pod.DeletionTimestamp == nil {
			return answer(r, http.StatusNotFound, metav1.StatusReasonNotFound, "the terminating pod is gone")
		}
		response, err := e.remove(r, pod.ResourceVersion)
		if err != nil || response.StatusCode != http.StatusConflict {
			return response, err
		}
		_ = response.Body.Close() // the Pod has changed: read it again
	}
}

// isPod reports whether the path belongs to a Pod:
// /api/v1/namespaces/NAMESPACE/pods/NAME.
func isPod(path string) bool {
	parts := strings.Split(strings.TrimPrefix(path, "/api/v1/namespaces/"), "/")
	return strings.HasPrefix(path, "/api/v1/namespaces/") && len(parts) == 3 && parts[1] == "pods"
}

// look reads the Pod. If the Pod does not exist, missing is the API server's
// response.
func (e endings) look(r *http.Request) (pod *metav1.PartialObjectMetadata, missing *http.Response, err error) {
	get := r.Clone(r.Context())
	get.Method, get.Body, get.ContentLength = http.MethodGet, nil, 0
	get.Header.Set("Accept", "application/json")
	response, err := e.next.RoundTrip(get)
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, response, err
	}
	defer func() { _ = response.Body.Close() }()
	pod = &metav1.PartialObjectMetadata{}
	if err := json.NewDecoder(response.Body).Decode(pod); err != nil {
		return nil, nil, fmt.Errorf("reading pod %s: %w", r.URL.Path, err)
	}
	return pod, nil, nil
}

// remove deletes the Pod immediately if the Pod still has the given resource
// version.
func (e endings) remove(r *http.Request, version string) (*http.Response, error) {
	options := metav1.NewDeleteOptions(0)
	options.Kind, options.APIVersion = "DeleteOptions", "v1"
	options.Preconditions = &metav1.Preconditions{ResourceVersion: &version}
	body, err := json.Marshal(options)
	if err != nil {
		return nil, err
	}
	again := r.Clone(r.Context())
	again.Header.Set("Content-Type", "application/json")
	again.Body, again.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return e.next.RoundTrip(again)
}

func answer(r *http.Request, code int, reason metav1.StatusReason, message string) (*http.Response, error) {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: http.StatusText(code), StatusCode: code, Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor,
		Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}
