package readers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"sync"
	"time"
)

const (
	// each is how many readers there are of each kind.
	each = 2
	// pause is between two requests of one reader: the readers should notice
	// every moment of an edit and leave room for it to happen.
	pause = 5 * time.Millisecond
	// patience is how long a reader waits for an answer.
	patience = 15 * time.Second
	// ofBrowser is how many connections browsers have to one host.
	ofBrowser = 6
	// mostTold bounds what is kept of failures.
	mostTold = 20
)

var (
	nextAt  = regexp.MustCompile(`<link rel="next" href="([^"]+)"`)
	indexAt = regexp.MustCompile(`data-mdv-index="([^"]+)"`)
)

// Report is what the readers met.
type Report struct {
	// Requests is how many were made, and Failed how many of them had no answer
	// or one that is no success.
	Requests, Failed int
	// Mixed counts answers with marks of two editions, and those of an older
	// edition than the same reader had seen before.
	Mixed int
	// Returned counts the pages of an older edition that a reader with several
	// connections met: such a reader may have kept one to an old viewer.
	Returned int
	// Newest is the newest edition that each reader has seen.
	Newest []int
	// Told is what is known of the first that failed or were mixed.
	Told []string
}

// Crowd are readers of a site who go from each page to the next, over and over,
// and look at the search index and an asset in between. Some keep their one
// connection; others make a new one for each request; one has several, as a
// browser has, and gets a page and what belongs to it at the same time.
//
// A request that meets the end of a kept connection before any answer is made
// again on a new one, as browsers do; see net/http.Transport.
type Crowd struct {
	stop    context.CancelFunc
	readers sync.WaitGroup

	mu     sync.Mutex
	report Report
}

// Gather has the readers begin.
func Gather(ctx context.Context, site string) (*Crowd, error) {
	base, err := url.Parse(site)
	if err != nil {
		return nil, fmt.Errorf("reading a site: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	c := &Crowd{stop: stop}
	for n := range 2*each + 1 {
		r := &reader{crowd: c, base: base, number: n, kind: []string{"one kept", "new"}[n%2], together: 1}
		if n == 2*each {
			r.kind, r.together = "several kept", ofBrowser
		}
		r.client = &http.Client{Timeout: patience, Transport: &http.Transport{
			MaxConnsPerHost: r.together, MaxIdleConnsPerHost: r.together, DisableKeepAlives: r.kind == "new",
		}}
		c.report.Newest = append(c.report.Newest, -1)
		c.readers.Go(func() { r.read(ctx) })
	}
	return c, nil
}

// Disperse has the readers end, and tells what they met.
func (c *Crowd) Disperse() Report {
	c.stop()
	c.readers.Wait()
	return c.Report()
}

// Report tells what the readers met so far.
func (c *Crowd) Report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.report
	r.Newest = append([]int(nil), r.Newest...)
	return r
}

// reader is one of them.
type reader struct {
	crowd    *Crowd
	base     *url.URL
	client   *http.Client
	kind     string
	number   int
	together int // how many requests it makes at the same time, at the most
	newest   int
}

// read goes on until the context ends. What is still to be read is what the last
// page led to.
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

// answer is what a request led to.
type answer struct {
	at   *url.URL
	text []byte
	err  error
}

// from is where a page leads.
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

// note counts an answer. Requests that were made at the same time are not older
// than one another: before is the newest edition from before them.
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
		r.tell(a.at, fmt.Errorf("it is of edition %d after one of edition %d", edition, before))
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
