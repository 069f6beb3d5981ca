package lab

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// present creates the controller's workload and Pod. Most controllers never look at them, so a failure
// does not end the check; the reason becomes a note.
func (l *Lab) present(ctx context.Context) {
	for i := range l.config.Subject.Self {
		if err := l.presentOne(ctx, &l.config.Subject.Self[i]); err != nil {
			object := &l.config.Subject.Self[i]
			l.absent = fmt.Sprintf("the controller cannot look up its own %s %s, which could not be created: %v", object.GetKind(), object.GetName(), err)
		}
	}
}

// presentOne creates an object together with its status.
func (l *Lab) presentOne(ctx context.Context, object *unstructured.Unstructured) error {
	resource, err := l.resource(object)
	if err != nil {
		return err
	}
	created, err := resource.Create(ctx, object, metav1.CreateOptions{FieldManager: "koboshi-check"})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil || object.Object["status"] == nil {
		return err
	}
	created.Object["status"] = object.Object["status"]
	_, err = resource.UpdateStatus(ctx, created, metav1.UpdateOptions{FieldManager: "koboshi-check"})
	return err
}
