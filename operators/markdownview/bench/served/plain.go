package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

// plain holds the objects that a user would write without the operator: ConfigMaps with
// the content, and a Deployment of viewers.
type plain struct {
	contents   []*corev1.ConfigMap
	deployment *appsv1.Deployment
}

// copyOf copies the ConfigMaps and Pods of a site, and changes their names and labels, so that the
// operator does not treat the copies as its own.
func (b *bench) copyOf(ctx context.Context, view *viewv1.MarkdownView) (*plain, error) {
	var original appsv1.Deployment
	if err := b.Get(ctx, client.ObjectKey{Namespace: view.Namespace, Name: "viewer-" + view.Name}, &original); err != nil {
		return nil, fmt.Errorf("reading the viewers of a site: %w", err)
	}
	labels := map[string]string{"app": "plain"}
	p := &plain{deployment: &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "plain"},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(b.replicas)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: *original.Spec.Template.DeepCopy(),
		},
	}}
	template := &p.deployment.Spec.Template
	template.ObjectMeta = metav1.ObjectMeta{Labels: labels}
	for i := range template.Spec.TopologySpreadConstraints {
		template.Spec.TopologySpreadConstraints[i].LabelSelector = p.deployment.Spec.Selector
	}
	for _, volume := range template.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for i := range volume.Projected.Sources {
			source := volume.Projected.Sources[i].ConfigMap
			content, err := b.contentOf(ctx, source.Name, len(p.contents))
			if err != nil {
				return nil, err
			}
			source.Name = content.Name
			p.contents = append(p.contents, content)
		}
	}
	return p, nil
}

func (b *bench) contentOf(ctx context.Context, name string, n int) (*corev1.ConfigMap, error) {
	var original corev1.ConfigMap
	if err := b.Get(ctx, client.ObjectKey{Namespace: b.namespace, Name: name}, &original); err != nil {
		return nil, fmt.Errorf("reading the content of a site: %w", err)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: fmt.Sprintf("plain-%d", n)},
		Data:       original.Data, BinaryData: original.BinaryData,
	}, nil
}

// measure returns the time from the first request until all Pods are Ready.
func (p *plain) measure(ctx context.Context, b *bench) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	begin := time.Now()
	for _, content := range p.contents {
		if err := b.Create(ctx, content.DeepCopy()); err != nil {
			return 0, fmt.Errorf("creating the ConfigMaps of the plain Deployment: %w", err)
		}
	}
	deployment := p.deployment.DeepCopy()
	if err := b.Create(ctx, deployment); err != nil {
		return 0, fmt.Errorf("creating the plain Deployment: %w", err)
	}
	if err := b.awaitReady(ctx, deployment); err != nil {
		return 0, err
	}
	took := time.Since(begin)
	// Background deletion frees the name immediately; awaitNoPods waits for the Pods.
	if err := b.Delete(ctx, deployment, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return 0, fmt.Errorf("deleting the plain Deployment: %w", err)
	}
	for _, content := range p.contents {
		if err := b.Delete(ctx, content.DeepCopy()); err != nil {
			return 0, fmt.Errorf("deleting the ConfigMaps of the plain Deployment: %w", err)
		}
	}
	return took, b.awaitNoPods(ctx)
}

func (b *bench) awaitReady(ctx context.Context, d *appsv1.Deployment) error {
	w, err := b.Watch(ctx, &appsv1.DeploymentList{}, client.InNamespace(d.Namespace), &client.ListOptions{Raw: since(d.ResourceVersion)})
	if err != nil {
		return fmt.Errorf("watching the plain Deployment: %w", err)
	}
	defer w.Stop()
	for change := range w.ResultChan() {
		if now, ok := change.Object.(*appsv1.Deployment); ok && now.UID == d.UID && now.Status.ReadyReplicas == int32(b.replicas) {
			return nil
		}
	}
	return fmt.Errorf("the plain Deployment is not Ready: %w", context.Cause(ctx))
}

// since returns the options of a watch that starts after a resource version.
func since(version string) *metav1.ListOptions { return &metav1.ListOptions{ResourceVersion: version} }
