package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/bench/internal/figures"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/readers"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/rig"
)

// limit is the time limit of each wait.
const limit = 3 * time.Minute

type bench struct {
	options
	*rig.Rig
	namespace string
	plain     *plain
	edition   int
	random    *rand.Rand
}

// measure takes all measurements, and then stops all programs.
func measure(ctx context.Context, o options) (*Report, error) {
	r := &Report{Conditions: figures.Now(), Rounds: o.rounds, Replicas: o.replicas, Pages: o.pages, Edits: o.edits, Seed: o.seed}
	err := rig.With(ctx, rig.Options{Log: os.Stderr}, func(world *rig.Rig) (err error) {
		b := &bench{options: o, Rig: world, random: rand.New(rand.NewPCG(o.seed, 0))}
		if b.namespace, err = world.Namespace(ctx); err != nil {
			return err
		}
		return b.rounds(ctx, r)
	})
	r.End()
	return r, err
}

// rounds measures plain Deployments and sites, and alternates which of the two is measured
// first.
func (b *bench) rounds(ctx context.Context, r *Report) error {
	// The plain Deployments are copied from the first site, which also warms up everything
	// that the measurements share.
	view, _, err := b.publish(ctx, "first")
	if err != nil {
		return err
	}
	if b.plain, err = b.copyOf(ctx, view); err != nil {
		return err
	}
	if err := b.unpublish(ctx, view); err != nil {
		return err
	}
	var plain, served, edited []float64
	ofPlain := func() error {
		d, err := b.plain.measure(ctx, b)
		plain = append(plain, d.Seconds())
		return err
	}
	ofView := func() error {
		first, edit, err := b.measureView(ctx)
		served, edited = append(served, first.Seconds()), append(edited, edit.Seconds())
		return err
	}
	for n := range b.options.rounds {
		turns := []func() error{ofPlain, ofView}
		if n%2 == 1 {
			slices.Reverse(turns)
		}
		for _, measure := range turns {
			if err := b.anyMoment(ctx); err != nil {
				return err
			}
			if err := measure(); err != nil {
				return err
			}
		}
		progress("round %d: plain %.2f s, served %.2f s, edited %.2f s", n+1, plain[n], served[n], edited[n])
	}
	r.Plain, r.Served, r.Edited = figures.Summarize(plain), figures.Summarize(served), figures.Summarize(edited)
	r.ServedRatio, r.EditedRatio = r.Served.Median/r.Plain.Median, r.Edited.Median/r.Plain.Median
	r.Readers, err = b.underRequests(ctx)
	return err
}

// anyMoment waits for a random time of up to a second. A kubelet checks its containers once
// a second. Without the wait, every measurement would start at the same point between two
// of the kubelet's checks, and the median would depend on this point.
func (b *bench) anyMoment(ctx context.Context) error {
	timer := time.NewTimer(time.Duration(b.random.Int64N(int64(time.Second))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

// publish creates a site and waits until it is served; begin is the time of the request.
func (b *bench) publish(ctx context.Context, name string) (view *viewv1.MarkdownView, begin time.Time, err error) {
	b.edition++
	view = &viewv1.MarkdownView{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
		Spec: viewv1.MarkdownViewSpec{
			Replicas: new(int32(b.replicas)), Markdowns: readers.Book(b.edition, b.pages),
		},
	}
	begin = time.Now()
	if err := b.Create(ctx, view); err != nil {
		return nil, begin, fmt.Errorf("creating the site: %w", err)
	}
	return view, begin, b.awaitServing(ctx, view)
}

func (b *bench) awaitServing(ctx context.Context, view *viewv1.MarkdownView) error {
	return rig.Await(ctx, limit, "the site to serve its spec", func(ctx context.Context) error { return b.Serving(ctx, view) })
}

// unpublish deletes a site and waits until its viewers are gone, so that their shutdown
// does not disturb the next measurement.
func (b *bench) unpublish(ctx context.Context, view *viewv1.MarkdownView) error {
	if err := b.Delete(ctx, view); err != nil {
		return fmt.Errorf("deleting the site: %w", err)
	}
	return b.awaitNoPods(ctx)
}

func (b *bench) awaitNoPods(ctx context.Context) error {
	return rig.Await(ctx, limit, "all Pods to go", func(ctx context.Context) error {
		var pods corev1.PodList
		if err := b.List(ctx, &pods, client.InNamespace(b.namespace)); err != nil {
			return err
		}
		if len(pods.Items) > 0 {
			return fmt.Errorf("there are still %d", len(pods.Items))
		}
		return nil
	})
}

// underRequests edits a site while readers send requests to it.
func (b *bench) underRequests(ctx context.Context) (readers.Report, error) {
	view, _, err := b.publish(ctx, "read")
	if err != nil {
		return readers.Report{}, err
	}
	site, err := b.Address(ctx, limit, view)
	if err != nil {
		return readers.Report{}, err
	}
	crowd, err := readers.Gather(ctx, site)
	if err != nil {
		return readers.Report{}, err
	}
	defer crowd.Disperse()
	for range b.edits {
		if _, err := b.edit(ctx, view, site); err != nil {
			return crowd.Report(), err
		}
		if err := b.awaitServing(ctx, view); err != nil {
			return crowd.Report(), err
		}
	}
	err = rig.Await(ctx, limit, "all readers to see the last edit", func(context.Context) error {
		if newest := crowd.Report().Newest; slices.Min(newest) != b.edition {
			return fmt.Errorf("they saw %v", newest)
		}
		return nil
	})
	return crowd.Disperse(), err
}
