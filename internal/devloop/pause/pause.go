// Package pause stops a deployed manager while another one runs elsewhere, and starts it again.
//
//	Pause: write the record ─▶ annotate, and scale to 0 ─▶ wait for its Pods to end
//	Restore: scale back, and remove the annotation ─▶ delete the record
//
// The annotation holds everything that is needed to restore the workload. The record, a file on
// this machine, holds the location of the workload. Both exist until the workload is restored. So
// whatever happens to the process that paused it, the next one can restore it.
package pause

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// Annotation marks a workload that is paused. Its value is a mark in JSON.
const Annotation = "dev.koboshi.dev/paused"

// ErrNotFound is the error of Pause for a workload that the cluster does not have, and
// ErrNotScalable for a workload that cannot be scaled.
var (
	ErrNotFound    = errors.New("the cluster does not have it")
	ErrNotScalable = errors.New("cannot be scaled to 0")
)

// Workload names a Deployment or a StatefulSet.
type Workload struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

func (w Workload) String() string { return w.Kind + " " + w.Namespace + "/" + w.Name }

// resources maps each kind that can be scaled to 0 to its resource.
var resources = map[string]schema.GroupVersionResource{
	"Deployment":  {Group: "apps", Version: "v1", Resource: "deployments"},
	"StatefulSet": {Group: "apps", Version: "v1", Resource: "statefulsets"},
}

// Record is the content of a record file. It has no credentials.
type Record struct {
	Workload
	// Session is a random ID, which the annotation also holds.
	Session string `json:"session"`
	// Kubeconfig, Context and Server identify the cluster: the files of the kubeconfig, the
	// name of the context, and the address of the API server.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Context    string `json:"context,omitempty"`
	Server     string `json:"server,omitempty"`
	// Owners are the field managers that owned the number of replicas.
	Owners []metav1.ManagedFieldsEntry `json:"owners,omitempty"`
	// Pending is true while it is unknown whether the request that pauses the workload has
	// succeeded, or will succeed.
	Pending bool `json:"pending,omitempty"`
}

// patchWithin limits the time of a request that pauses a workload. The end of the session does not
// cancel this request, because its result would then be unknown.
const patchWithin = 15 * time.Second

// mark is the value of the annotation.
type mark struct {
	Session  string    `json:"session"`
	Replicas int64     `json:"replicas"`
	Since    time.Time `json:"since"`
	Host     string    `json:"host,omitempty"`
}

// Read reads a record. It returns nil if there is no file.
func Read(file string) (*Record, error) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nothing is paused, which is no error
	}
	r := &Record{}
	if err == nil {
		err = json.Unmarshal(data, r)
	}
	if _, known := resources[r.Kind]; err == nil && (!known || r.Name == "" || r.Session == "") {
		err = errors.New("it names no workload")
	}
	if err != nil {
		return nil, fmt.Errorf("reading what an earlier session paused: %s: %w; if the manager in the cluster runs, delete the file", file, err)
	}
	return r, nil
}

// write writes a record, so that the end of this process leaves either no record or a complete one.
func (r *Record) write(file string) error {
	data, err := json.Marshal(r)
	if err == nil {
		err = os.WriteFile(file+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("recording what is paused: %w", err)
	}
	return nil
}

// Pause scales a workload to 0, and writes a record of it to a file. It sets the session of the
// record.
func Pause(ctx context.Context, client dynamic.Interface, file string, r *Record) error {
	resource, ok := resources[r.Kind]
	if !ok {
		return fmt.Errorf("%s %w", r.Workload, ErrNotScalable)
	}
	if earlier, err := Read(file); err != nil || earlier != nil {
		return cmp.Or(err, fmt.Errorf("an earlier session may have left a workload paused, as %s records; start koboshi dev again, which restores it", file))
	}
	r.Session = rand.Text()
	at := client.Resource(resource).Namespace(r.Namespace)
	for {
		workload, err := at.Get(ctx, r.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_ = os.Remove(file) // written by an earlier try
			return ErrNotFound
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", r.Workload, err)
		}
		if err := r.free(workload); err != nil {
			return err
		}
		r.Owners, r.Pending = ownersOf(workload), true
		if err := r.write(file); err != nil {
			return err
		}
		switch err := r.pause(ctx, at, workload); {
		case err == nil:
			r.Pending = false
			return r.write(file)
		case rejected(err):
			r.Session, r.Pending = "", false
			return errors.Join(err, os.Remove(file))
		case !apierrors.IsConflict(err):
			return err // the request may still succeed, so the record stays
		}
	}
}

// rejected reports whether the server has refused a request for good, so that it changes nothing.
func rejected(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsConflict(err) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusRequestTimeout && code != http.StatusTooManyRequests
}

// pause marks the workload and scales it to 0 in one request.
func (r *Record) pause(ctx context.Context, at dynamic.ResourceInterface, workload *unstructured.Unstructured) error {
	value, err := r.mark(workload)
	if err == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patchWithin)
		defer cancel()
		err = patch(ctx, at, workload, value, 0)
	}
	if err != nil {
		return fmt.Errorf("pausing %s: %w", r.Workload, err)
	}
	return nil
}

// mark returns the value of the annotation.
func (r *Record) mark(workload *unstructured.Unstructured) (string, error) {
	host, _ := os.Hostname() // only informs people
	value, err := json.Marshal(mark{Session: r.Session, Replicas: replicasOf(workload), Since: time.Now().UTC().Truncate(time.Second), Host: host})
	return string(value), err
}

// free returns an error if another session has paused the workload.
func (r *Record) free(workload *unstructured.Unstructured) error {
	m, ok := markOf(workload)
	if !ok {
		return nil
	}
	kubectl := "  kubectl"
	if r.Context != "" {
		kubectl += " --context " + r.Context
	}
	kubectl += " -n " + r.Namespace
	what := resources[r.Kind].Resource + " " + r.Name
	return fmt.Errorf("%s was paused by koboshi dev on %s at %s; that session may still run: end it there, or, if it no longer runs, restore the workload:\n%s scale %s --replicas=%d\n%s annotate %s %s-",
		r.Workload, m.Host, m.Since.Format(time.RFC3339), kubectl, what, m.Replicas, kubectl, what, Annotation)
}

// Restore restores the workload of a record, and deletes the file. It reports false if the workload
// was no longer paused. A workload that another session has paused meanwhile stays paused.
func Restore(ctx context.Context, client dynamic.Interface, file string, r *Record) (restored bool, err error) {
	at := client.Resource(resources[r.Kind]).Namespace(r.Namespace)
	for {
		workload, err := at.Get(ctx, r.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			break
		}
		if err != nil {
			return false, r.fail(err)
		}
		m, ok := markOf(workload)
		if !ok && r.Pending {
			// The request of Pause may still be on its way. Changing the workload now makes the server
			// refuse that request with a conflict.
			if err := r.fence(ctx, at, workload); err != nil {
				return false, r.fail(err)
			}
			continue
		}
		if ok && m.Session != r.Session {
			break
		}
		if !ok { // an earlier try may have ended here
			if err := errors.Join(returnFields(ctx, at, r.Name, r.Owners), unmark(ctx, client, workload)); err != nil {
				return false, r.fail(err)
			}
			break
		}
		replicas, owners := replicasOf(workload), r.Owners
		if replicas == 0 {
			replicas = m.Replicas
		} else { // somebody has scaled it already, and owns the number
			owners = nil
		}
		switch err := patch(ctx, at, workload, "", replicas); {
		case apierrors.IsConflict(err):
			continue
		case err != nil:
			return false, r.fail(err)
		}
		restored = true
		if err := errors.Join(returnFields(ctx, at, r.Name, owners), unmark(ctx, client, workload)); err != nil {
			return true, fmt.Errorf("%s is scaled up again, but not everything is as it was before: %w; the next start of koboshi dev in this project tries again", r.Workload, err)
		}
		break
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return restored, err
	}
	return restored, nil
}

// fence marks a workload without scaling it, so that it has another version than the one for which
// Pause has asked. The mark is removed as if the workload were paused.
func (r *Record) fence(ctx context.Context, at dynamic.ResourceInterface, workload *unstructured.Unstructured) error {
	value, err := r.mark(workload)
	if err != nil {
		return err
	}
	if err := patch(ctx, at, workload, value, replicasOf(workload)); err != nil && !apierrors.IsConflict(err) {
		return err
	}
	// A conflict means that the workload has changed since: the request of Pause was applied, or will
	// be refused.
	r.Pending = false
	return nil
}

func (r *Record) fail(err error) error {
	return fmt.Errorf("restoring %s, which koboshi dev has scaled to 0: %w; the next start of koboshi dev in this project tries again", r.Workload, err)
}

// patch sets the number of replicas and the annotation, which it removes if the value is empty.
func patch(ctx context.Context, at dynamic.ResourceInterface, workload *unstructured.Unstructured, value string, replicas int64) error {
	annotations := map[string]any{Annotation: nil}
	if value != "" {
		annotations[Annotation] = value
	}
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": annotations, "resourceVersion": workload.GetResourceVersion()},
		"spec":     map[string]any{"replicas": replicas},
	})
	if err != nil {
		return err
	}
	_, err = at.Patch(ctx, workload.GetName(), types.MergePatchType, data, metav1.PatchOptions{FieldManager: manager})
	return err
}

func markOf(workload *unstructured.Unstructured) (m mark, ok bool) {
	value, ok := workload.GetAnnotations()[Annotation]
	return m, ok && json.Unmarshal([]byte(value), &m) == nil
}

// replicasOf returns the number of replicas; the API server sets it to 1 if it is missing.
func replicasOf(workload *unstructured.Unstructured) int64 {
	replicas, found, _ := unstructured.NestedInt64(workload.Object, "spec", "replicas")
	if !found {
		return 1
	}
	return replicas
}

// WaitForPods waits until the workload has no Pods any more, so that none of them holds a
// lease or reconciles.
func WaitForPods(ctx context.Context, client dynamic.Interface, w Workload) error {
	workload, err := client.Resource(resources[w.Kind]).Namespace(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	selector, err := selectorOf(workload)
	if err != nil {
		return err
	}
	// Scaling a workload down does not remove Pods that have already ended.
	options := metav1.ListOptions{LabelSelector: selector, FieldSelector: "status.phase!=Failed,status.phase!=Succeeded"}
	pods := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(w.Namespace)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		list, err := pods.List(ctx, options)
		if err != nil || len(list.Items) == 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// selectorOf returns the selector of the Pods of a workload.
func selectorOf(workload *unstructured.Unstructured) (string, error) {
	raw, _, _ := unstructured.NestedMap(workload.Object, "spec", "selector")
	var selector metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &selector); err != nil {
		return "", err
	}
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil {
		return "", err
	}
	return parsed.String(), nil
}
