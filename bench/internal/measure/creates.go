package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

const (
	warmUp = 500 * time.Millisecond
	window = 3 * time.Second
)

// creates measures how many objects clients create if they never pause.
var creates = Measure{
	Name:    "creates",
	Timeout: 4 * time.Minute,
	Figures: []Figure{
		{Name: "creates-1", Label: "creates, 1 client", Unit: "/s", More: true},
		{Name: "creates-8", Label: "creates, 8 clients", Unit: "/s", More: true},
		{Name: "creates-32", Label: "creates, 32 clients", Unit: "/s", More: true},
	},
	run: func(ctx context.Context, b Bout) (v Values, err error) {
		env, config, err := b.started()
		if err != nil {
			return nil, err
		}
		defer env.stop(&err)
		// Stock sleeps for two seconds in the first create after a CRD is installed.
		if err := fill(ctx, config, 1); err != nil {
			return nil, err
		}
		v = Values{}
		for _, clients := range []int{1, 8, 32} {
			rate, err := createRate(ctx, config, clients)
			if err != nil {
				return nil, fmt.Errorf("with %d clients: %w", clients, err)
			}
			v[fmt.Sprintf("creates-%d", clients)] = rate
		}
		return v, nil
	},
}

// createRate returns the creates per second of several clients, each with its own
// connection.
func createRate(ctx context.Context, config *rest.Config, clients int) (float64, error) {
	var shelves []shelf
	for range clients {
		own := rest.CopyConfig(config)
		// client-go shares a connection between clients with equal configurations. A configuration
		// with a dialer is never equal to another configuration.
		own.Dial = (&net.Dialer{}).DialContext
		s, err := openShelf(own)
		if err != nil {
			return 0, err
		}
		shelves = append(shelves, s)
	}
	if _, err := createAll(ctx, shelves, "warm", warmUp); err != nil {
		return 0, err
	}
	began := time.Now()
	n, err := createAll(ctx, shelves, "run", window)
	return float64(n) / time.Since(began).Seconds(), err
}

// createAll lets all clients create for the given time and returns the number of
// objects that they created.
func createAll(ctx context.Context, shelves []shelf, name string, during time.Duration) (int64, error) {
	var wg sync.WaitGroup
	var created atomic.Int64
	failed := make([]error, len(shelves))
	end := time.Now().Add(during)
	for c, s := range shelves {
		wg.Go(func() {
			for i := 0; failed[c] == nil && time.Now().Before(end); i++ {
				failed[c] = s.put(ctx, fmt.Sprintf("%s-%d-%d-%d", name, len(shelves), c, i))
				created.Add(1)
			}
		})
	}
	wg.Wait()
	return created.Load(), errors.Join(failed...)
}
