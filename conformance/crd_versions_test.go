package conformance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// servers returns the CRD of testdata/servers.yaml, whose versions a webhook
// converts.
func servers(t *testing.T, p *plane) (*definition, *endpoint) {
	t.Helper()
	webhook := serve(t, http.HandlerFunc(convertServers))
	return p.define(t, "servers.yaml", values{
		"URL":       webhook.URL + "/convert",
		"CA_BUNDLE": base64.StdEncoding.EncodeToString(webhook.caBundle),
	}).temporary(t), webhook
}

// convertServers answers a ConversionReview of apiextensions.k8s.io/v1.
func convertServers(w http.ResponseWriter, r *http.Request) {
	var review struct {
		metav1.TypeMeta
		Request struct {
			UID               string                      `json:"uid"`
			DesiredAPIVersion string                      `json:"desiredAPIVersion"`
			Objects           []unstructured.Unstructured `json:"objects"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	result := metav1.Status{Status: metav1.StatusSuccess}
	for _, o := range review.Request.Objects {
		if err := convertServer(o, review.Request.DesiredAPIVersion); err != nil {
			result = metav1.Status{Status: metav1.StatusFailure, Message: err.Error()}
		}
	}
	respond(w, map[string]any{
		"apiVersion": review.APIVersion,
		"kind":       review.Kind,
		"response": map[string]any{
			"uid":              review.Request.UID,
			"result":           result,
			"convertedObjects": review.Request.Objects,
		},
	})
}

func convertServer(o unstructured.Unstructured, apiVersion string) error {
	spec := o.Object["spec"].(map[string]any)
	if strings.HasSuffix(apiVersion, "/v1") {
		hostPort, _ := spec["hostPort"].(string)
		host, port, found := strings.Cut(hostPort, ":")
		if !found {
			return fmt.Errorf("%q has no port", hostPort)
		}
		o.Object["spec"] = map[string]any{"host": host, "port": port}
	} else {
		o.Object["spec"] = map[string]any{"hostPort": fmt.Sprintf("%s:%s", spec["host"], spec["port"])}
	}
	o.SetAPIVersion(apiVersion)
	return nil
}

func TestConversionWebhookConvertsOldVersionToNew(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	d, _ := servers(t, p)
	ns := p.namespace(t)
	if _, err := d.in("v1alpha1", ns).Create(t.Context(), d.make(t, "v1alpha1", "s", `{hostPort: "here:80"}`), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o, err := d.in("v1", ns).Get(t.Context(), "s", metav1.GetOptions{})
	if err := errors.Join(err, fieldIs(o, map[string]any{"host": "here", "port": "80"}, "spec")); err != nil {
		t.Error(err)
	}
}

func TestConversionWebhookConvertsNewVersionToOld(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	d, _ := servers(t, p)
	ns := p.namespace(t)
	d.mustCreate(t, ns, "s", `{host: here, port: "80"}`)
	list, err := d.in("v1alpha1", ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("listed %v instead of one object: %v", list, err)
	}
	if err := fieldIs(&list.Items[0], map[string]any{"hostPort": "here:80"}, "spec"); err != nil {
		t.Error(err)
	}
}

func TestConversionWebhookRefusalReachesClient(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	d, _ := servers(t, p)
	o := d.make(t, "v1alpha1", "s", `{hostPort: here}`)
	_, err := d.in("v1alpha1", p.namespace(t)).Create(t.Context(), o, metav1.CreateOptions{})
	if err == nil || !strings.Contains(err.Error(), `"here" has no port`) {
		t.Errorf("not refused with the webhook's message: %v", err)
	}
}

func TestWatchSeesObjectsOfOtherVersionConverted(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	d, _ := servers(t, p)
	ns := p.namespace(t)
	events, err := d.in("v1alpha1", ns).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	o := d.mustCreate(t, ns, "s", `{host: here, port: "80"}`)
	wantEvent(t, events, watch.Added, map[string]any{"hostPort": "here:80"})
	setField(t, o, "81", "spec", "port")
	if _, err := d.in("v1", ns).Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wantEvent(t, events, watch.Modified, map[string]any{"hostPort": "here:81"})
	if err := d.in("v1", ns).Delete(t.Context(), "s", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantEvent(t, events, watch.Deleted, map[string]any{"hostPort": "here:81"})
}

// wantEvent waits for the next event, and checks its type and the spec of its object.
func wantEvent(t *testing.T, events watch.Interface, eventType watch.EventType, spec any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	select {
	case <-ctx.Done():
		t.Fatalf("no event %s within %v", eventType, within)
	case event, open := <-events.ResultChan():
		o, ok := event.Object.(*unstructured.Unstructured)
		if !open || !ok || event.Type != eventType {
			t.Fatalf("event %v instead of %s", event, eventType)
		}
		if err := fieldIs(o, spec, "spec"); err != nil {
			t.Errorf("in %s: %v", eventType, err)
		}
	}
}

func TestReadOfOtherVersionFailsWhileConversionWebhookIsDown(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	d, webhook := servers(t, p)
	ns := p.namespace(t)
	d.mustCreate(t, ns, "s", `{host: here, port: "80"}`)

	webhook.goDown()
	_, err := d.in("v1alpha1", ns).Get(t.Context(), "s", metav1.GetOptions{})
	want := fmt.Sprintf("conversion webhook for %s/v1, Kind=Server failed: Post %q", d.group, webhook.URL+"/convert?timeout=30s")
	if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("no error with %q: %v", want, err)
	}
	if _, err := d.in("v1", ns).Get(t.Context(), "s", metav1.GetOptions{}); err != nil {
		t.Errorf("reading the stored version, which needs no webhook: %v", err)
	}

	webhook.comeBack()
	eventually(t, "the webhook converts again", func(ctx context.Context) error {
		o, err := d.in("v1alpha1", ns).Get(ctx, "s", metav1.GetOptions{})
		return errors.Join(err, fieldIs(o, map[string]any{"hostPort": "here:80"}, "spec"))
	})
}
