/*
Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// reviews answers reviews like an API server that accepts every token except "unknown", and
// lets only the user "scraper" read metrics. The name of a user is its token.
func reviews(t *testing.T) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews", func(w http.ResponseWriter, r *http.Request) {
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		review.Status.Authenticated = review.Spec.Token != "unknown"
		review.Status.User.Username = review.Spec.Token
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews", func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		wanted := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "scraper" && wanted.Verb == "get" && wanted.Path == "/metrics"
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	})
	return mux
}

func TestMetricsAreServedOnlyToAuthorizedClients(t *testing.T) {
	server := httptest.NewServer(reviews(t))
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := authorized(client, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]int{
		"":        http.StatusUnauthorized,
		"unknown": http.StatusUnauthorized,
		"other":   http.StatusForbidden,
		"scraper": http.StatusOK,
	} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response := httptest.NewRecorder()
		handler.ServeHTTP(response, request)
		if response.Code != want {
			t.Errorf("token %q: the status is %d, want %d", token, response.Code, want)
		}
	}
}

func TestTheManagerIsReadyWhenItsCachesAreFilled(t *testing.T) {
	for filled, want := range map[bool]int{false: http.StatusServiceUnavailable, true: http.StatusOK} {
		response := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
		probes(func() bool { return filled }).ServeHTTP(response, request)
		if response.Code != want {
			t.Errorf("caches filled: %v: the status is %d, want %d", filled, response.Code, want)
		}
	}
}

func TestAnEndpointServesTLSUntilTheContextEnds(t *testing.T) {
	config, err := (&options{}).certificate()
	if err != nil || len(config.Certificates) != 1 {
		t.Fatalf("%v: %v", config, err)
	}
	if _, err := (&options{metricsCertPath: t.TempDir(), metricsCertName: "tls.crt", metricsCertKey: "tls.key"}).certificate(); err == nil {
		t.Error("a missing certificate is no error")
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := listen(ctx, "127.0.0.1:0", http.NotFoundHandler(), config); err != nil {
		t.Error(err)
	}
	if err := listen(ctx, "no address", http.NotFoundHandler(), config); err == nil {
		t.Error("an address that cannot be used is no error")
	}
}
