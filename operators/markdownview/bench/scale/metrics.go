package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// sample holds the manager's metrics at one time.
type sample struct {
	// requests counts requests to the API server, by method.
	requests map[string]float64
	// kinds counts the writes to child objects, by kind and verb.
	kinds map[string]float64
	cpu   float64
	// resident and heap are in bytes.
	resident, heap float64
}

var (
	line     = regexp.MustCompile(`^(\w+)(\{.*\})? (\S+)$`)
	methodIn = regexp.MustCompile(`method="(\w+)"`)
	kindIn   = regexp.MustCompile(`kind="(\w+)"`)
	verbIn   = regexp.MustCompile(`verb="(\w+)"`)
)

// read reads the manager's metrics.
func read(ctx context.Context, url string) (sample, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return sample{}, fmt.Errorf("reading the metrics: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return sample{}, fmt.Errorf("reading the metrics: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", resp.Status)
	}
	if err != nil {
		return sample{}, fmt.Errorf("reading the metrics: %w", err)
	}
	return parse(string(text))
}

// parse reads the required metrics from a text in Prometheus' format.
func parse(text string) (sample, error) {
	s := sample{requests: map[string]float64{}, kinds: map[string]float64{}}
	for l := range strings.Lines(text) {
		found := line.FindStringSubmatch(strings.TrimSpace(l))
		if found == nil {
			continue // a comment
		}
		value, err := strconv.ParseFloat(found[3], 64)
		if err != nil {
			return s, fmt.Errorf("reading the metrics: %w", err)
		}
		switch labels := found[2]; found[1] {
		case "rest_client_requests_total":
			s.requests[first(methodIn, labels)] += value
		case "markdownview_child_writes_total":
			s.kinds[first(verbIn, labels)+" "+first(kindIn, labels)] += value
		case "process_cpu_seconds_total":
			s.cpu = value
		case "process_resident_memory_bytes":
			s.resident = value
		case "go_memstats_heap_inuse_bytes":
			s.heap = value
		}
	}
	if len(s.requests) == 0 || s.resident == 0 || s.heap == 0 {
		return s, fmt.Errorf("reading the metrics: the request or memory metrics are missing")
	}
	return s, nil
}

func first(in *regexp.Regexp, labels string) string {
	if found := in.FindStringSubmatch(labels); found != nil {
		return found[1]
	}
	return ""
}

// writes returns the number of requests that change something.
func (s sample) writes() float64 {
	var all float64
	for method, n := range s.requests {
		if method != http.MethodGet {
			all += n
		}
	}
	return all
}

// since returns the cost per object since an earlier sample.
func (s sample) since(before sample, n int) Cost {
	each := func(now, then float64) float64 { return (now - then) / float64(n) }
	c := Cost{
		CPU: each(s.cpu, before.cpu), Writes: each(s.writes(), before.writes()),
		Reads: each(s.requests[http.MethodGet], before.requests[http.MethodGet]), Kinds: map[string]float64{},
	}
	others := c.Writes
	for kind, n := range s.kinds {
		if writes := each(n, before.kinds[kind]); writes != 0 {
			c.Kinds[kind] = writes
			others -= writes
		}
	}
	c.Kinds["status, Events and others"] = others
	return c
}

func keys(m map[string]float64) iter.Seq[string] { return maps.Keys(m) }
