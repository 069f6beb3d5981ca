package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Env names the environment variable that holds the address of the cloud.
const Env = "CLOUD_URL"

// ErrNotFound means that a volume does not exist.
var ErrNotFound = errors.New("no such volume")

// Client talks to a cloud.
type Client struct {
	URL string
}

var httpClient = &http.Client{Timeout: 10 * time.Second}

// Create creates a new volume in every call.
func (c *Client) Create(ctx context.Context, name string, size int) (Volume, error) {
	var v Volume
	err := c.do(ctx, http.MethodPost, "/volumes", Volume{Name: name, Size: size}, &v)
	return v, err
}

// List returns the volumes with this name, or all volumes if the name is empty.
func (c *Client) List(ctx context.Context, name string) ([]Volume, error) {
	var all []Volume
	err := c.do(ctx, http.MethodGet, "/volumes?name="+url.QueryEscape(name), nil, &all)
	return all, err
}

// Get reads a volume. Get returns ErrNotFound if the volume does not exist.
func (c *Client) Get(ctx context.Context, id string) (Volume, error) {
	var v Volume
	err := c.do(ctx, http.MethodGet, "/volumes/"+url.PathEscape(id), nil, &v)
	return v, err
}

// Delete deletes a volume. Delete returns no error if the volume does not exist.
func (c *Client) Delete(ctx context.Context, id string) error {
	err := c.do(ctx, http.MethodDelete, "/volumes/"+url.PathEscape(id), nil, nil)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+path, body)
	if err != nil {
		return fmt.Errorf("creating a request to the cloud at %q, the value of the environment variable %s: %w", c.URL, Env, err)
	}
	resp, err := httpClient.Do(req)
	if err != nil {
		return fmt.Errorf("sending a request to the cloud: %w", err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return ErrNotFound
	case resp.StatusCode >= 300:
		return fmt.Errorf("%s %s: the cloud responded with %s", method, path, resp.Status)
	case out == nil:
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("%s %s: reading the response: %w", method, path, err)
	}
	return nil
}
