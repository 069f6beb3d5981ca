package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
)

// play imitates the Deployment controller, the ReplicaSet controller and the nodes in a
// namespace, as far as a rollout depends on them. A viewer is Ready immediately, unless its
// template has a nodeSelector, which no node matches.
func play(namespace string) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	DeferCleanup(func() {
		cancel()
		<-done
	})
	tick := time.NewTicker(20 * time.Millisecond)
	go func() {
		defer close(done)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				// Failures are retried at the next tick.
				if err := playOnce(ctx, namespace); err != nil && ctx.Err() == nil {
					fmt.Fprintln(GinkgoWriter, "player:", err)
				}
			}
		}
	}()
}

func playOnce(ctx context.Context, namespace string) error {
	var deployments appsv1.DeploymentList
	if err := api.List(ctx, &deployments, client.InNamespace(namespace)); err != nil {
		return err
	}
	for i := range deployments.Items {
		if err := playDeployment(ctx, &deployments.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

func playDeployment(ctx context.Context, d *appsv1.Deployment) error {
	var sets appsv1.ReplicaSetList
	if err := api.List(ctx, &sets, client.InNamespace(d.Namespace), client.MatchingLabels(d.Spec.Selector.MatchLabels)); err != nil {
		return err
	}
	hash := templateHash(d)
	var fresh *appsv1.ReplicaSet
	for i := range sets.Items {
		if sets.Items[i].Labels[appsv1.DefaultDeploymentUniqueLabelKey] == hash {
			fresh = &sets.Items[i]
		}
	}
	if fresh == nil {
		return api.Create(ctx, newSet(d, hash))
	}
	if err := playSet(ctx, fresh, *d.Spec.Replicas, d.Spec.MinReadySeconds); err != nil {
		return err
	}
	for i := range sets.Items {
		old := &sets.Items[i]
		broken := old.Status.AvailableReplicas < *old.Spec.Replicas
		if old == fresh || fresh.Status.AvailableReplicas < *d.Spec.Replicas && !broken {
			continue
		}
		if err := api.Delete(ctx, old); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	return nil
}

// playSet sets the status of a ReplicaSet as if its Pods existed.
func playSet(ctx context.Context, set *appsv1.ReplicaSet, replicas, minReady int32) error {
	if *set.Spec.Replicas != replicas || set.Spec.MinReadySeconds != minReady {
		set.Spec.Replicas, set.Spec.MinReadySeconds = &replicas, minReady
		if err := api.Update(ctx, set); err != nil {
			return err
		}
	}
	status := appsv1.ReplicaSetStatus{Replicas: replicas, ObservedGeneration: set.Generation}
	if set.Spec.Template.Spec.NodeSelector == nil {
		status.ReadyReplicas = replicas
		if minReady < children.Hold {
			status.AvailableReplicas = replicas
		}
	}
	if status.Replicas == set.Status.Replicas && status.ReadyReplicas == set.Status.ReadyReplicas &&
		status.AvailableReplicas == set.Status.AvailableReplicas {
		return nil
	}
	set.Status = status
	return api.Status().Update(ctx, set)
}

func newSet(d *appsv1.Deployment, hash string) *appsv1.ReplicaSet {
	template := d.Spec.Template.DeepCopy()
	template.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.Name + "-" + hash, Labels: template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: d.Spec.Replicas, MinReadySeconds: d.Spec.MinReadySeconds,
			Selector: selector, Template: *template,
		},
	}
}

func templateHash(d *appsv1.Deployment) string {
	text, _ := json.Marshal(d.Spec.Template) // encoding an API type never fails
	h := fnv.New32a()
	_, _ = h.Write(text)
	return fmt.Sprintf("%08x", h.Sum32())
}
