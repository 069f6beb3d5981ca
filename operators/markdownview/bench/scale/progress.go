package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/rig"
)

// progress follows the sites of a namespace with a watch, because polling each site would
// add load to the measurement.
type progress struct {
	mu sync.Mutex
	// served holds the newest fully served generation of each site.
	served  map[string]int64
	changed chan struct{} // closed at each change
	ended   bool
}

func follow(ctx context.Context, r *rig.Rig, namespace string) (*progress, error) {
	w, err := r.Watch(ctx, &viewv1.MarkdownViewList{}, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("watching the sites: %w", err)
	}
	p := &progress{served: map[string]int64{}, changed: make(chan struct{})}
	go func() {
		for change := range w.ResultChan() {
			if view, ok := change.Object.(*viewv1.MarkdownView); ok {
				p.note(view)
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended = true
		close(p.changed)
	}()
	return p, nil
}

func (p *progress) note(view *viewv1.MarkdownView) {
	if view.Status.ObservedGeneration != view.Generation || !meta.IsStatusConditionTrue(view.Status.Conditions, viewv1.ConditionReady) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.served[view.Name] < view.Generation {
		p.served[view.Name] = view.Generation
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

// await waits until a site serves the written spec.
func (p *progress) await(ctx context.Context, view *viewv1.MarkdownView) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		p.mu.Lock()
		served, changed, ended := p.served[view.Name], p.changed, p.ended
		p.mu.Unlock()
		switch {
		case served >= view.Generation:
			return nil
		case ended:
			return errors.New("the watch of the sites has ended")
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("waiting for site %s to serve its current spec: %w", view.Name, ctx.Err())
		}
	}
}
