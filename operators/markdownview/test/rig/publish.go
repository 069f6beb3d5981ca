package rig

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

// Publish creates a site in a new namespace, waits until it is served, and returns its
// address.
func (r *Rig) Publish(ctx context.Context, limit time.Duration, name string, spec viewv1.MarkdownViewSpec) (address string, err error) {
	namespace, err := r.Namespace(ctx)
	if err != nil {
		return "", err
	}
	view := &viewv1.MarkdownView{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: spec}
	if err := r.Create(ctx, view); err != nil {
		return "", err
	}
	err = Await(ctx, limit, name+" to serve its spec", func(ctx context.Context) error { return r.Serving(ctx, view) })
	if err != nil {
		return "", err
	}
	return r.Address(ctx, limit, view)
}
