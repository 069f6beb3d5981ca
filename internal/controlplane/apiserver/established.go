package apiserver

import (
	"context"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

// peersHaveLearned is the time for which upstream delays the creation of custom resources
// after their CRD becomes Established. The delay lets peer API servers learn of the CRD
// (customresource_handler.go, kubernetes/kubernetes#99199). This server has no peers and
// needs no delay, so longEstablished makes the condition look older in the server's
// informer, but not in the store.
const peersHaveLearned = 2 * time.Second

// longEstablished is the transform of the CRD informer. longEstablished makes the condition
// Established look older.
func longEstablished(obj any) (any, error) {
	crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return obj, nil
	}
	for i, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			crd.Status.Conditions[i].LastTransitionTime.Time = c.LastTransitionTime.Add(-peersHaveLearned)
		}
	}
	return crd, nil
}

// keepTransitions is an admission plugin that keeps the time changed by longEstablished out
// of the store. The server's controllers read the changed time from the informer and write
// it back with the condition. keepTransitions restores the original time if the status of
// the condition did not change.
type keepTransitions struct{ admission.Interface }

func (k keepTransitions) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetSubresource() == "status" && a.GetUserInfo().GetName() == user.APIServerUser {
		keepEstablishedTime(a.GetObject(), a.GetOldObject())
	}
	if next, ok := k.Interface.(admission.MutationInterface); ok && next.Handles(a.GetOperation()) {
		return next.Admit(ctx, a, o)
	}
	return nil
}

func (k keepTransitions) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if next, ok := k.Interface.(admission.ValidationInterface); ok && next.Handles(a.GetOperation()) {
		return next.Validate(ctx, a, o)
	}
	return nil
}

func keepEstablishedTime(object, old any) {
	updated, ok := object.(*apiextensions.CustomResourceDefinition)
	stored, wasOne := old.(*apiextensions.CustomResourceDefinition)
	if !ok || !wasOne {
		return
	}
	for i, c := range updated.Status.Conditions {
		for _, was := range stored.Status.Conditions {
			if c.Type == apiextensions.Established && was.Type == c.Type && was.Status == c.Status {
				updated.Status.Conditions[i].LastTransitionTime = was.LastTransitionTime
			}
		}
	}
}
