package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/inspect"
)

// Client sends requests to a running session.
type Client struct {
	base, token string
}

// NewClient returns a client for the address that Server.URL returns.
func NewClient(address string) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || !isLoopback(u.Host) {
		return nil, fmt.Errorf("%q is not the address of a session; use the address that the session printed", withoutToken(address))
	}
	token, found := strings.CutPrefix(u.Fragment, "token=")
	if !found {
		return nil, fmt.Errorf("%s has no token; use the complete address that the session printed", withoutToken(address))
	}
	token, _, _ = strings.Cut(token, "&")
	return &Client{"http://" + u.Host, token}, nil
}

func withoutToken(address string) string {
	before, _, _ := strings.Cut(address, "#")
	return before
}

func (c *Client) get(ctx context.Context, path string) (*http.Response, error) {
	return c.do(ctx, http.MethodGet, path)
}

func (c *Client) do(ctx context.Context, method, path string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("asking the session at %s: %w; check that it is still running", c.base, errors.Unwrap(err))
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	var failure struct{ Error string }
	if err := json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&failure); err != nil || failure.Error == "" {
		return nil, fmt.Errorf("asking the session at %s: it answers with status %s", c.base, response.Status)
	}
	return nil, errors.New(failure.Error)
}

// Ask returns the answer to a question, with the type that the question's New returns.
func (c *Client) Ask(ctx context.Context, q inspect.Question, with inspect.Query) (any, error) {
	response, err := c.get(ctx, "/api/v1/"+q.Name+"?"+Encode(with))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer := q.New()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return nil, fmt.Errorf("reading the answer of the session: %w", err)
	}
	return answer, nil
}

// Export copies the complete session as a trace file.
func (c *Client) Export(ctx context.Context, w io.Writer) error {
	response, err := c.get(ctx, "/api/v1/export")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(w, response.Body)
	return err
}

// Changes calls do when the session may have changed, until do fails, the session ends or the
// context ends.
func (c *Client) Changes(ctx context.Context, do func() error) error {
	response, err := c.get(ctx, "/api/v1/events")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data:") {
			if err := do(); err != nil {
				return err
			}
		}
	}
	return nil // the end of the session is the end of the stream
}
