package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/test/readers"
)

// again is the polling interval, which is short compared with the measured times of a few seconds.
const again = 2 * time.Millisecond

var reachableAt = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// measureView measures the time to the first page and the time of one edit.
func (b *bench) measureView(ctx context.Context) (served, edited time.Duration, err error) {
	reachable := make(chan string, 1)
	stop, err := b.watchEvents(ctx, reachable)
	if err != nil {
		return 0, 0, err
	}
	defer stop()
	type done struct {
		site string
		at   time.Time
		err  error
	}
	first := make(chan done, 1)
	wanted := b.edition + 1
	go func() {
		select {
		case site := <-reachable:
			err := awaitEdition(ctx, site, wanted)
			first <- done{site, time.Now(), err}
		case <-ctx.Done():
			first <- done{err: ctx.Err()}
		}
	}()
	view, begin, err := b.publish(ctx, "site")
	if err != nil {
		return 0, 0, err
	}
	d := <-first
	if d.err != nil {
		return 0, 0, d.err
	}
	if edited, err = b.edit(ctx, view, d.site); err != nil {
		return 0, 0, err
	}
	return d.at.Sub(begin), edited, b.unpublish(ctx, view)
}

// watchEvents sends a Service's address as soon as the plane announces it.
func (b *bench) watchEvents(ctx context.Context, reachable chan<- string) (stop func(), err error) {
	var events corev1.EventList
	if err := b.List(ctx, &events, client.InNamespace(b.namespace)); err != nil {
		return nil, fmt.Errorf("listing events: %w", err)
	}
	version := events.ResourceVersion
	w, err := b.Watch(ctx, &corev1.EventList{}, client.InNamespace(b.namespace), &client.ListOptions{Raw: since(version)})
	if err != nil {
		return nil, fmt.Errorf("watching events: %w", err)
	}
	go func() {
		for change := range w.ResultChan() {
			if e, ok := change.Object.(*corev1.Event); ok && change.Type == watch.Added && e.Reason == "Reachable" {
				reachable <- reachableAt.FindString(e.Message)
				return
			}
		}
	}()
	return w.Stop, nil
}

// edit measures the time from a change to all pages until readers get the new pages, and checks
// that every viewer serves the new pages.
func (b *bench) edit(ctx context.Context, view *viewv1.MarkdownView, site string) (time.Duration, error) {
	b.edition++
	before := view.DeepCopy()
	view.Spec.Markdowns = readers.Book(b.edition, b.pages)
	begin := time.Now()
	if err := b.Patch(ctx, view, client.MergeFrom(before)); err != nil {
		return 0, fmt.Errorf("editing the site: %w", err)
	}
	if err := awaitEdition(ctx, site, b.edition); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	return took, b.expectViewers(ctx, view)
}

// expectViewers checks each viewer behind the Service directly.
func (b *bench) expectViewers(ctx context.Context, view *viewv1.MarkdownView) error {
	var service corev1.Service
	if err := b.Get(ctx, client.ObjectKey{Namespace: view.Namespace, Name: "viewer-" + view.Name}, &service); err != nil {
		return err
	}
	var pods corev1.PodList
	if err := b.List(ctx, &pods, client.InNamespace(view.Namespace), client.MatchingLabels(service.Spec.Selector)); err != nil {
		return err
	}
	if len(pods.Items) != b.replicas {
		return fmt.Errorf("the Service selects %d viewers, want %d", len(pods.Items), b.replicas)
	}
	for i := range pods.Items {
		at := "http://" + net.JoinHostPort(pods.Items[i].Status.PodIP, "8080")
		if got, err := editionAt(ctx, at); err != nil || got != b.edition {
			return fmt.Errorf("the viewer %s has edition %d (%w), want %d", pods.Items[i].Name, got, err, b.edition)
		}
	}
	return nil
}

// awaitEdition polls a site until it serves the wanted edition.
func awaitEdition(ctx context.Context, site string, want int) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(again)
	defer tick.Stop()
	for {
		got, err := editionAt(ctx, site)
		if err == nil && got == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for edition %d at %s: the site has edition %d: %w", want, site, got, err)
		case <-tick.C:
		}
	}
}

func editionAt(ctx context.Context, site string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, site, nil)
	if err != nil {
		return 0, err
	}
	req.Close = true // so that each request goes to a currently selected viewer
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", resp.Status)
	}
	if err != nil {
		return 0, err
	}
	return readers.EditionOf(text)
}
