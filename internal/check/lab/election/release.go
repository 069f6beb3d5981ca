package election

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/request"
)

// nameOf returns the name of a Lease in Known.Names.
func nameOf(ref state.Ref) string {
	name := ref.Namespace + "/" + ref.Name
	if request.IsLeaseKind(ref.GroupKind) {
		return name
	}
	return ref.Kind + "/" + name
}

// records lists the kinds other than Lease that may hold the record of an election.
var records = map[string]schema.GroupVersionResource{
	"ConfigMap": corev1.SchemeGroupVersion.WithResource("configmaps"),
	"Endpoints": corev1.SchemeGroupVersion.WithResource("endpoints"),
}

// Release releases the Leases of instances that no longer run, as if the Leases had expired before
// the next instance starts. This is realistic, because an instance can be down for any length of
// time. Release must not be called while an instance is running. A Lease that does not expire,
// because it has no duration or is never renewed, keeps its holder. Release returns a note for each
// Lease that it released or failed to release.
func Release(ctx context.Context, client dynamic.Interface, names []string) (notes []string) {
	for _, name := range names {
		what := "Lease " + name
		if kind, rest, ok := strings.Cut(name, "/"); ok && strings.Contains(rest, "/") {
			what = "the election in " + kind + " " + rest
		}
		switch released, err := release(ctx, client, name); {
		case err != nil:
			notes = append(notes, fmt.Sprintf("%s could not be released, so it has to expire: %v", what, err))
		case released:
			notes = append(notes, what+" expired while the controller was down")
		}
	}
	return notes
}

// release writes what client-go's leader election writes when a leader ends with
// ReleaseOnCancel, so every instance that waits for a Lease understands it.
func release(ctx context.Context, client dynamic.Interface, name string) (released bool, err error) {
	resource, change := coordinationv1.SchemeGroupVersion.WithResource("leases"), releaseLease
	parts := strings.Split(name, "/")
	if len(parts) == 3 {
		resource, change = records[parts[0]], releaseRecord
		parts = parts[1:]
	}
	if len(parts) != 2 || resource.Resource == "" {
		return false, fmt.Errorf("no kind of election is known for %q", name)
	}
	objects := client.Resource(resource).Namespace(parts[0])
	for range 5 {
		object, err := objects.Get(ctx, parts[1], metav1.GetOptions{})
		if err != nil {
			return false, ignoreNotFound(err)
		}
		if held, err := change(object, time.Now()); err != nil || !held {
			return false, err
		}
		_, err = objects.Update(ctx, object, metav1.UpdateOptions{FieldManager: fault.OtherClient})
		if err == nil || !apierrors.IsConflict(err) { // the last renewal may have been on its way
			return err == nil, err
		}
	}
	return false, errors.New("it kept changing")
}

// releaseLease releases a Lease, and reports false if there is nothing to release.
func releaseLease(object *unstructured.Unstructured, now time.Time) (held bool, err error) {
	var lease coordinationv1.Lease
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &lease); err != nil {
		return false, err
	}
	s := &lease.Spec
	if !expires(s) {
		return false, nil
	}
	transitions := 0
	if s.LeaseTransitions != nil {
		transitions = int(*s.LeaseTransitions)
	}
	lease.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(released(transitions, now))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&lease)
	if err != nil {
		return false, err
	}
	object.Object = content
	object.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	return true, nil
}

// expires reports whether a Lease has a holder and expires unless it is renewed.
func expires(spec *coordinationv1.LeaseSpec) bool {
	return spec.HolderIdentity != nil && *spec.HolderIdentity != "" &&
		spec.LeaseDurationSeconds != nil && *spec.LeaseDurationSeconds > 0 && spec.RenewTime != nil
}

// releaseRecord releases the record in an annotation, and reports false if there is nothing
// to release.
func releaseRecord(object *unstructured.Unstructured, now time.Time) (held bool, err error) {
	annotations := object.GetAnnotations()
	text, ok := annotations[request.LeaderAnnotation]
	if !ok {
		return false, nil
	}
	var record resourcelock.LeaderElectionRecord
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return false, fmt.Errorf("reading the annotation %s: %w", request.LeaderAnnotation, err)
	}
	if record.HolderIdentity == "" || record.LeaseDurationSeconds <= 0 || record.RenewTime.IsZero() {
		return false, nil
	}
	data, err := json.Marshal(released(record.LeaderTransitions, now))
	if err != nil {
		return false, err
	}
	annotations[request.LeaderAnnotation] = string(data)
	object.SetAnnotations(annotations)
	return true, nil
}

func released(transitions int, now time.Time) *resourcelock.LeaderElectionRecord {
	return &resourcelock.LeaderElectionRecord{
		LeaseDurationSeconds: 1, AcquireTime: metav1.NewTime(now), RenewTime: metav1.NewTime(now),
		LeaderTransitions: transitions,
	}
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
