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

package controller

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ExemplarStore is a client of the store that keeps the texts outside the cluster. Replace
// it with a client of the API that your kind needs.
type ExemplarStore struct {
	// URL is the address of the store.
	URL string
}

// exemplarStoreClient limits the time of a request, because a server that does not respond
// would otherwise block the controller.
var exemplarStoreClient = &http.Client{Timeout: 5 * time.Second}

// Get reads a text, and reports whether it exists.
func (s *ExemplarStore) Get(ctx context.Context, name string) (text string, exists bool, err error) {
	return s.do(ctx, http.MethodGet, name, "")
}

// Put creates or replaces a text.
func (s *ExemplarStore) Put(ctx context.Context, name, text string) error {
	_, _, err := s.do(ctx, http.MethodPut, name, text)
	return err
}

// Delete deletes a text, if it exists.
func (s *ExemplarStore) Delete(ctx context.Context, name string) error {
	_, _, err := s.do(ctx, http.MethodDelete, name, "")
	return err
}

// do sends a request. A response with the status 404 is no error.
func (s *ExemplarStore) do(ctx context.Context, method, name, text string) (body string, exists bool, err error) {
	if s.URL == "" {
		return "", false, errors.New("the address of the store is unknown; set the environment variable GALLERY_EXEMPLAR_STORE")
	}
	address, err := url.JoinPath(s.URL, "texts", name)
	if err != nil {
		return "", false, fmt.Errorf("the address of the store: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(text))
	if err != nil {
		return "", false, err
	}
	resp, err := exemplarStoreClient.Do(req)
	if err != nil {
		return "", false, fmt.Errorf("asking the store: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	switch {
	case err != nil:
		return "", false, fmt.Errorf("reading the response of the store: %w", err)
	case resp.StatusCode == http.StatusNotFound:
		return "", false, nil
	case resp.StatusCode != http.StatusOK:
		return "", false, fmt.Errorf("the store responded to %s with %s", method, resp.Status)
	}
	return string(data), true, nil
}
