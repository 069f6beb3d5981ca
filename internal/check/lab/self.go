package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// present creates the Deployment and the Pod of the version in a slot. Most controllers never look at
// them, so a failure does not end the check; the first reason becomes a note.
func (l *Lab) present(ctx context.Context, slot int) {
	var deployment *unstructured.Unstructured
	for _, object := range l.subject(slot).Self {
		object := object.DeepCopy()
		if object.GetKind() == "Pod" && deployment != nil {
			object.SetOwnerReferences([]metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "Deployment", Name: deployment.GetName(), UID: deployment.GetUID(), Controller: ptr.To(true),
			}})
		}
		created, err := l.presentOne(ctx, object)
		switch {
		case err != nil && l.absent == "":
			l.absent = fmt.Sprintf("the controller cannot look up its own %s %s, which could not be created: %v", object.GetKind(), object.GetName(), err)
		case err != nil:
		case created.GetKind() == "Deployment":
			deployment = created
		case created.GetKind() == "Pod":
			l.podUIDs[slot] = string(created.GetUID())
		}
	}
}

// presentOne creates an object together with its status, or returns the one that exists.
func (l *Lab) presentOne(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource, err := l.resource(object)
	if err != nil {
		return nil, err
	}
	created, err := resource.Create(ctx, object, metav1.CreateOptions{FieldManager: scenario.SelfManager})
	if apierrors.IsAlreadyExists(err) {
		return resource.Get(ctx, object.GetName(), metav1.GetOptions{})
	}
	if err != nil || object.Object["status"] == nil {
		return created, err
	}
	created.Object["status"] = object.Object["status"]
	return resource.UpdateStatus(ctx, created, metav1.UpdateOptions{FieldManager: scenario.SelfManager})
}

// presentOther replaces the Deployment and the Pod of one version by those of another.
func (l *Lab) presentOther(ctx context.Context, from, to int) {
	for _, object := range l.subject(from).Self {
		if resource, err := l.resource(&object); err == nil && isOwn(&object) {
			now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}
			_ = resource.Delete(ctx, object.GetName(), now) // if this fails, the controller sees the old object
		}
	}
	l.present(ctx, to)
}

// isOwn reports whether an object of Self belongs to the version, and not to all of them.
func isOwn(object *unstructured.Unstructured) bool {
	return object.GetKind() == "Deployment" || object.GetKind() == "Pod"
}

// hostname returns the variable in which a container runtime gives a container the name of its Pod.
func hostname(s *subject.Subject) []string {
	const name = "HOSTNAME="
	if slices.ContainsFunc(s.Env, func(e string) bool { return strings.HasPrefix(e, name) }) {
		return nil
	}
	for i := range s.Self {
		if s.Self[i].GetKind() == "Pod" {
			return []string{name + s.Self[i].GetName()}
		}
	}
	return nil
}
