package readers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"time"
)

const (
	// each is the number of readers of each kind.
	each = 2
	// pause is the time between two requests of one reader. The pause is short enough to notice
	// every phase of an edit, and long enough not to delay the edit.
	pause = 5 * time.Millisecond
	// patience limits the time that a reader waits for a response.
	patience = 15 * time.Second
	// ofBrowser is the number of connections that a browser opens to one host.
	ofBrowser = 6
	// mostTold limits the recorded failures.
	mostTold = 20
)

var (
	nextAt  = regexp.MustCompile(`<link rel="next" href="([^"]+)"`)
	indexAt = regexp.MustCompile(`data-mdv-index="([^"]+)"`)
)

// Report holds the observations of the readers.
type Report struct {
	// Requests counts all requests; Failed counts requests without a successful response.
	Requests, Failed int
	// Mixed counts responses with the marks of two editions, and responses with an older edition
	// than the reader has already seen, if the reader sends only one request at a time.
	Mixed int
	// Returned counts pages of an older edition that were seen by a reader with several
	// connections, which may have kept a connection to an old viewer.
	Returned int
	// Newest holds the newest edition that each reader has seen.
	Newest []int
	// Told describes the first failed or mixed responses.
	Told []string
}

// Crowd is a group of readers that go from page to page repeatedly, and request the search
// index and an asset in between. Some readers keep one connection, and some open a new one
// for each request. One reader has several connections, as a browser has, and requests a
// page together with its resources.
//
// If a kept connection ends before any response, the request is repeated on a new one, as in
// browsers; see net/http.Transport.
type Crowd struct {
	stop    context.CancelFunc
	readers sync.WaitGroup

	mu     sync.Mutex
	report Report
}

// Gather starts the readers.
func Gather(ctx context.Context, site string) (*Crowd, error) {
	base, err := url.Parse(site)
	if err != nil {
		return nil, fmt.Errorf("reading a site: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	const size = 2*each + 1
	c := &Crowd{stop: stop, report: Report{Newest: slices.Repeat([]int{-1}, size)}}
	for n := range size {
		r := &reader{crowd: c, base: base, number: n, kind: []string{"one kept", "new"}[n%2], together: 1}
		if n == size-1 {
			r.kind, r.together = "several kept", ofBrowser
		}
		r.client = &http.Client{Timeout: patience, Transport: &http.Transport{
			MaxConnsPerHost: r.together, MaxIdleConnsPerHost: r.together, DisableKeepAlives: r.kind == "new",
		}}
		c.readers.Go(func() { r.read(ctx) })
	}
	return c, nil
}

// Disperse stops the readers and returns their observations.
func (c *Crowd) Disperse() Report {
	c.stop()
	c.readers.Wait()
	return c.Report()
}

// Report returns the observations so far.
func (c *Crowd) Report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.report
	r.Newest = append([]int(nil), r.Newest...)
	return r
}

// reader is one reader of a crowd.
type reader struct {
	crowd    *Crowd
	base     *url.URL
	client   *http.Client
	kind     string
	number   int
	together int // maximum number of concurrent requests
	newest   int
}

// read requests pages until the context ends. The reader follows the links of the last page.
func (r *reader) read(ctx context.Context) {
	defer r.client.CloseIdleConnections()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	todo := []*url.URL{r.base}
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := todo[:min(r.together, len(todo))]
		answers := make([]answer, len(now))
		var all sync.WaitGroup
		for i, at := range now {
			all.Go(func() { answers[i] = r.get(ctx, at) })
		}
		all.Wait()
		if ctx.Err() != nil {
			return
		}
		before := r.newest
		todo = todo[len(now):]
		for _, a := range answers {
			r.note(a, before)
			todo = append(todo, r.from(a.at, a.text, n)...)
		}
		if len(todo) == 0 {
			todo = []*url.URL{r.base}
		}
	}
}

// answer is the result of a request.
type answer struct {
	at   *url.URL
	text []byte
	err  error
}

// from returns the links of a page.
func (r *reader) from(at *url.URL, page []byte, n int) (all []*url.URL) {
	follow := func(address string) {
		if u, err := at.Parse(address); err == nil {
			all = append(all, u)
		}
	}
	if found := indexAt.FindSubmatch(page); found != nil && n%2 == 0 {
		follow(string(found[1]))
	}
	if found := nextAt.FindSubmatch(page); found != nil {
		follow(string(found[1]))
	} else if len(all) > 0 {
		all = append(all, r.base.JoinPath(Asset))
	}
	return all
}

func (r *reader) get(ctx context.Context, at *url.URL) answer {
	text, err := r.request(ctx, at)
	return answer{at, text, err}
}

func (r *reader) request(ctx context.Context, at *url.URL) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, err
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.100q", resp.Status, text)
	}
	return text, err
}

// note records a response. Concurrent requests have no order, so before must be the newest edition
// that the reader had seen when it sent the first of these requests.
func (r *reader) note(a answer, before int) {
	c := r.crowd
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.Requests++
	if a.err != nil {
		c.report.Failed++
		r.tell(a.at, a.err)
		return
	}
	edition, err := EditionOf(a.text)
	switch {
	case err != nil:
		c.report.Mixed++
		r.tell(a.at, err)
	case edition < before && r.together > 1:
		c.report.Returned++
	case edition < before:
		c.report.Mixed++
		r.tell(a.at, fmt.Errorf("the page has edition %d, but the reader has already seen the later edition %d", edition, before))
	}
	r.newest = max(r.newest, edition)
	c.report.Newest[r.number] = r.newest
}

func (r *reader) tell(at *url.URL, err error) {
	if told := &r.crowd.report.Told; len(*told) < mostTold {
		*told = append(*told, fmt.Sprintf("%s reader %d, %s connection, %s: %v",
			time.Now().Format("15:04:05.000"), r.number, r.kind, at.Path, err))
	}
}
