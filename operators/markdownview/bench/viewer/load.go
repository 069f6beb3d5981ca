package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

// round holds the result of one round of load.
type round struct {
	rate     float64 // requests per second
	p50, p99 time.Duration
}

// spread is the median of several values, with their range.
type spread struct{ Median, Min, Max float64 }

// figures holds the rounds of one server.
type figures struct {
	Rate     spread // requests per second
	P50, P99 spread // milliseconds
	rounds   []round
}

func (f *figures) add(r round) {
	f.rounds = append(f.rounds, r)
	of := func(value func(round) float64) spread {
		var all []float64
		for _, r := range f.rounds {
			all = append(all, value(r))
		}
		slices.Sort(all)
		return spread{all[len(all)/2], all[0], all[len(all)-1]}
	}
	f.Rate = of(func(r round) float64 { return r.rate })
	f.P50 = of(func(r round) float64 { return float64(r.p50) / 1e6 })
	f.P99 = of(func(r round) float64 { return float64(r.p99) / 1e6 })
}

func (f figures) String() string {
	return fmt.Sprintf("%7.0f req/s (%.0f to %.0f)  p50 %.2f ms  p99 %.2f ms (%.2f to %.2f)",
		f.Rate.Median, f.Rate.Min, f.Rate.Max, f.P50.Median, f.P99.Median, f.P99.Min, f.P99.Max)
}

// measure requests the page repeatedly on persistent connections, and also returns the size of the
// body.
func measure(address, encoding string, o options) (round, int, error) {
	request := []byte("GET /page.html HTTP/1.1\r\nHost: " + address + "\r\nAccept-Encoding: " + encoding + "\r\n\r\n")
	var wait sync.WaitGroup
	var mu sync.Mutex
	var times []time.Duration
	var size int
	var failed error
	started := time.Now()
	for range o.connections {
		wait.Go(func() {
			own, bytes, err := ask(address, request, started.Add(o.duration))
			mu.Lock()
			defer mu.Unlock()
			times, size, failed = append(times, own...), bytes, errors.Join(failed, err)
		})
	}
	wait.Wait()
	took := time.Since(started)
	if failed != nil {
		return round{}, 0, failed
	}
	slices.Sort(times)
	return round{
		rate: float64(len(times)) / took.Seconds(),
		p50:  times[len(times)/2],
		p99:  times[len(times)*99/100],
	}, size, nil
}

// ask sends requests on one connection until a given time.
func ask(address string, request []byte, until time.Time) (times []time.Duration, size int, err error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(until.Add(10 * time.Second)); err != nil {
		return nil, 0, err
	}
	reader := bufio.NewReaderSize(connection, 64<<10)
	for now := time.Now(); now.Before(until); {
		if _, err := connection.Write(request); err != nil {
			return nil, 0, err
		}
		if size, err = readAnswer(reader); err != nil {
			return nil, 0, err
		}
		done := time.Now()
		times, now = append(times, done.Sub(now)), done
	}
	return times, size, nil
}

// readAnswer only reads and discards a response, so that the benchmark
// measures the servers and not the client.
func readAnswer(reader *bufio.Reader) (size int, err error) {
	size = -1
	for first := true; ; first = false {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if first && !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
			return 0, fmt.Errorf("the response is %s", line)
		}
		if len(line) == 0 {
			break
		}
		if key, value, _ := bytes.Cut(line, []byte(": ")); bytes.EqualFold(key, []byte("Content-Length")) {
			if size, err = strconv.Atoi(string(value)); err != nil {
				return 0, err
			}
		}
	}
	if size < 0 {
		return 0, errors.New("the response has no Content-Length")
	}
	_, err = io.CopyN(io.Discard, reader, int64(size))
	return size, err
}
