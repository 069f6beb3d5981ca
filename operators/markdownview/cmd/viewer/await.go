package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// awaitEach limits the time of one request.
	awaitEach = 5 * time.Second
	// awaitPause is the time between two requests.
	awaitPause = 500 * time.Millisecond
)

// await waits until a URL answers with 200. The chart's test uses await, because the image contains
// no other HTTP client.
func await(ctx context.Context, url string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(awaitPause)
	defer tick.Stop()
	var last error
	for {
		err := ask(ctx, url)
		if err == nil {
			return nil
		}
		// If the limit cut a request off, the error does not explain why there is no page, so an
		// earlier error is kept.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s was not served within %s: %w", url, limit, last)
		}
	}
}

// ask sends one request, and returns an error if the status is not 200.
func ask(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, awaitEach)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, 8<<20))
	err = errors.Join(err, answer.Body.Close())
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the response is %s", answer.Status)
	}
	return err
}
