package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/koboshi-dev/koboshi/bench/internal/stats"
)

const (
	writes       = 1000
	warmWrites   = 50
	eventTimeout = 30 * time.Second
)

// latency measures how soon a controller could learn about a write.
var latency = Measure{
	Name:    "watch",
	Timeout: 5 * time.Minute,
	Figures: []Figure{
		{Name: "event-p50", Label: "write to event, p50", Unit: "ms", Note: "Write to event: from just before a create until a watch receives its event; 1000 creates, one after the other."},
		{Name: "event-p99", Label: "write to event, p99", Unit: "ms"},
	},
	run: func(ctx context.Context, b Bout) (v Values, err error) {
		env, config, err := b.started()
		if err != nil {
			return nil, err
		}
		defer env.stop(&err)
		if err := fill(ctx, config, 1); err != nil {
			return nil, err
		}
		s, err := openShelf(config)
		if err != nil {
			return nil, err
		}
		took, err := s.writeAndSee(ctx)
		if err != nil {
			return nil, err
		}
		return Values{"event-p50": stats.Percentile(took, 50), "event-p99": stats.Percentile(took, 99)}, nil
	},
}

// A sight records the time at which the event of an object arrived.
type sight struct {
	name string
	at   time.Time
}

// writeAndSee returns the time from each write to its event, in milliseconds.
func (s shelf) writeAndSee(ctx context.Context) (took []float64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	list, err := s.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	events, err := s.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return nil, fmt.Errorf("watching: %w", err)
	}
	defer events.Stop()
	// Events are read separately from the writes, because an event may arrive before the
	// response to the write.
	seen := make(chan sight, warmWrites+writes)
	go note(events, seen)
	for i := range warmWrites + writes {
		name := fmt.Sprintf("seen-%d", i)
		began := time.Now()
		if err := s.put(ctx, name); err != nil {
			return nil, err
		}
		at, err := await(ctx, seen, name)
		if err != nil {
			return nil, err
		}
		if i >= warmWrites {
			took = append(took, milliseconds(at.Sub(began)))
		}
	}
	return took, nil
}

func note(events watch.Interface, seen chan<- sight) {
	defer close(seen)
	for event := range events.ResultChan() {
		at := time.Now()
		if object, ok := event.Object.(*unstructured.Unstructured); ok && event.Type == watch.Added {
			seen <- sight{object.GetName(), at}
		}
	}
}

func await(ctx context.Context, seen <-chan sight, name string) (time.Time, error) {
	timeout := time.After(eventTimeout)
	for {
		select {
		case one, open := <-seen:
			if !open {
				return time.Time{}, errors.New("the watch ended before all events had arrived")
			}
			if one.name == name {
				return one.at, nil
			}
		case <-timeout:
			return time.Time{}, fmt.Errorf("no event for %s arrived within %s", name, eventTimeout)
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		}
	}
}
