package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/bench/internal/figures"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/readers"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/rig"
)

const (
	// limit bounds the time of one step.
	limit = 15 * time.Minute
	// writers is the number of sites that are written at the same time.
	writers = 8
	// sitesPerNode is half the number of Pods that fit on a node, because an edit doubles
	// the number of viewers.
	sitesPerNode = 50
	// quiet is the time without writes after which the manager is considered idle.
	quiet = 3 * time.Second
)

type bench struct {
	options
	*rig.Rig
	namespace string
	progress  *progress
	edition   int
}

// measure takes all measurements, and then stops all programs.
func measure(ctx context.Context, o options) (*Report, error) {
	r := &Report{Conditions: figures.Now(), Pages: o.pages, Edits: o.edits}
	err := rig.With(ctx, rig.Options{
		Simulated: true, Nodes: 1 + slices.Max(o.sizes)/sitesPerNode, Log: os.Stderr,
	}, func(world *rig.Rig) error {
		return r.fill(ctx, &bench{options: o, Rig: world, edition: 1})
	})
	r.End()
	return r, err
}

func (r *Report) fill(ctx context.Context, b *bench) (err error) {
	if b.namespace, err = b.Namespace(ctx); err != nil {
		return err
	}
	if b.progress, err = follow(ctx, b.Rig, b.namespace); err != nil {
		return err
	}
	before := 0
	for _, size := range b.sizes {
		s, err := b.grow(ctx, before, size)
		if err != nil {
			return fmt.Errorf("with %d sites: %w", size, err)
		}
		r.Sizes = append(r.Sizes, s)
		before = size
	}
	r.Steady, err = b.steady(ctx)
	return err
}

func tell(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

func siteName(n int) string { return fmt.Sprintf("site-%04d", n) }

// grow increases the number of sites, and then edits some of them.
func (b *bench) grow(ctx context.Context, from, to int) (Size, error) {
	size := Size{Sites: to}
	start, err := read(ctx, b.Metrics)
	if err != nil {
		return size, err
	}
	begin := time.Now()
	if err := b.create(ctx, from, to); err != nil {
		return size, err
	}
	took := time.Since(begin)
	made, err := b.settled(ctx)
	if err != nil {
		return size, err
	}
	size.Created = made.since(start, to-from)
	size.Created.Took = took.Seconds() / float64(to-from)
	tell("%d sites made in %v", to-from, took.Round(time.Millisecond))

	var inEdits time.Duration
	for n := range b.edits {
		// The edits are spread over all sites.
		took, err := b.edit(ctx, siteName(n*to/b.edits))
		if err != nil {
			return size, err
		}
		inEdits += took
	}
	edited, err := b.settled(ctx)
	if err != nil {
		return size, err
	}
	size.Edited = edited.since(made, b.edits)
	size.Edited.Took = inEdits.Seconds() / float64(b.edits)
	size.Resident, size.Heap = edited.resident, edited.heap
	tell("%d edits with %d sites in %v", b.edits, to, inEdits.Round(time.Millisecond))
	return size, nil
}

// create creates sites in parallel, and waits until all are served.
func (b *bench) create(ctx context.Context, from, to int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for n := from; n < to; n++ {
		group.Go(func() error {
			view := &viewv1.MarkdownView{
				ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: siteName(n)},
				Spec:       viewv1.MarkdownViewSpec{Markdowns: readers.Book(b.edition, b.pages)},
			}
			if err := b.Create(ctx, view); err != nil {
				return fmt.Errorf("creating %s: %w", view.Name, err)
			}
			return b.progress.await(ctx, view)
		})
	}
	return group.Wait()
}

// edit changes all pages of a site, and waits until the new pages are served and the old viewers
// are gone.
func (b *bench) edit(ctx context.Context, name string) (time.Duration, error) {
	view := &viewv1.MarkdownView{}
	if err := b.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: name}, view); err != nil {
		return 0, err
	}
	b.edition++
	before := view.DeepCopy()
	view.Spec.Markdowns = readers.Book(b.edition, b.pages)
	begin := time.Now()
	if err := b.Patch(ctx, view, client.MergeFrom(before)); err != nil {
		return 0, fmt.Errorf("editing %s: %w", name, err)
	}
	err := b.progress.await(ctx, view)
	return time.Since(begin), err
}

// settled returns the manager's metrics once it has been idle for a while.
func (b *bench) settled(ctx context.Context) (last sample, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		before := last
		if last, err = read(ctx, b.Metrics); err != nil {
			return last, err
		}
		if before.requests != nil && last.writes() == before.writes() {
			return last, nil
		}
		if err := pause(ctx, quiet); err != nil {
			return last, fmt.Errorf("waiting for the manager to become idle: %w", err)
		}
	}
}

// steady measures the cost of an idle period.
func (b *bench) steady(ctx context.Context) (Steady, error) {
	before, err := b.settled(ctx)
	if err != nil {
		return Steady{}, err
	}
	tell("nothing happens for %v", b.options.steady)
	begin := time.Now()
	if err := pause(ctx, b.options.steady); err != nil {
		return Steady{}, err
	}
	after, err := read(ctx, b.Metrics)
	if err != nil {
		return Steady{}, err
	}
	c := after.since(before, 1)
	return Steady{Seconds: time.Since(begin).Seconds(), Writes: c.Writes, Reads: c.Reads, CPU: c.CPU}, nil
}

// pause waits for a fixed time, because idle time is measured here.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
