package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/koboshi-dev/koboshi/internal/devloop"
	"github.com/koboshi-dev/koboshi/internal/devloop/pause"
	"github.com/koboshi-dev/koboshi/internal/project"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

var deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// deploy creates a Deployment with two replicas, and returns its record.
func (b *bench) deploy(name string) pause.Record {
	b.t.Helper()
	labels := map[string]any{"app": name}
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"replicas": int64(2), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "manager", "image": "example.com/manager:v1"}}},
			},
		},
	}}
	if _, err := b.client.Resource(deployments).Namespace("default").Create(b.t.Context(), object, metav1.CreateOptions{}); err != nil {
		b.t.Fatal(err)
	}
	return pause.Record{Workload: pause.Workload{Kind: "Deployment", Namespace: "default", Name: name}}
}

// has checks the number of replicas of a Deployment, and whether it is marked as paused.
func (b *bench) has(name string, replicas int64, paused bool) {
	b.t.Helper()
	d := b.get(deployments, name)
	got, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
	if _, marked := d.GetAnnotations()[pause.Annotation]; got != replicas || marked != paused {
		b.t.Errorf("%s has %d replicas, and is paused: %t; want %d and %t", name, got, marked, replicas, paused)
	}
}

// restored restores what a file records, and checks whether something was paused.
func (b *bench) restored(file string, want bool) {
	b.t.Helper()
	r, err := pause.Read(file)
	if err != nil || r == nil {
		b.t.Fatalf("there is no record: %v", err)
	}
	got, err := pause.Restore(b.t.Context(), b.client, file, r)
	if err != nil || got != want {
		b.t.Errorf("restored: %t, %v; want %t", got, err, want)
	}
	if r, err := pause.Read(file); r != nil || err != nil {
		b.t.Errorf("the record is still there: %v, %v", r, err)
	}
}

func pausedAndRestored(b *bench) {
	r := b.deploy("captain")
	one, two := filepath.Join(b.t.TempDir(), "one"), filepath.Join(b.t.TempDir(), "two")
	pauseAs := func(file string) error { again := r; return pause.Pause(b.t.Context(), b.client, file, &again) }
	before := b.owners("captain")
	if err := pauseAs(one); err != nil {
		b.t.Fatal(err)
	}
	b.has("captain", 0, true)
	if err := pauseAs(two); err == nil || !strings.Contains(err.Error(), "kubectl -n default scale deployments captain --replicas=2") {
		b.t.Errorf("another session may pause it, too: %v", err)
	}
	if err := pauseAs(one); err == nil || !strings.Contains(err.Error(), "an earlier session") {
		b.t.Errorf("a record is overwritten: %v", err)
	}
	b.restored(one, true)
	b.has("captain", 2, false)
	if after := b.owners("captain"); after != before {
		b.t.Errorf("the fields of the restored Deployment are owned by\n%swant\n%s", after, before)
	}
	b.pausedLate(r, one)

	// Controllers write to a workload all the time.
	config := rest.CopyConfig(b.admin)
	conflicts := 2
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if conflicts == 0 || r.Method != http.MethodPatch {
				return next.RoundTrip(r)
			}
			conflicts--
			status := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`
			return &http.Response{StatusCode: http.StatusConflict, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(status)), Request: r}, nil
		})
	})
	conflicting, err := dynamic.NewForConfig(config)
	if err != nil {
		b.t.Fatal(err)
	}
	again := r
	if err := pause.Pause(b.t.Context(), conflicting, one, &again); err != nil || conflicts != 0 {
		b.t.Errorf("after conflicts, pausing gives %v", err)
	}
	b.has("captain", 0, true)
	elsewhere := &Cluster{Config: b.admin, Record: one}
	again.Server = "https://192.0.2.1"
	if err := elsewhere.Restore(b.t.Context(), &again, func(string) {}); err == nil || !strings.Contains(err.Error(), "was paused in the cluster at https://192.0.2.1") {
		b.t.Errorf("restoring in another cluster gives %v", err)
	}
	b.restored(one, true)
	b.has("captain", 2, false)

	// Changes that others make meanwhile are kept.
	if err := pauseAs(one); err != nil {
		b.t.Fatal(err)
	}
	scaled := []byte(`{"spec":{"replicas":3}}`)
	if _, err := b.client.Resource(deployments).Namespace("default").Patch(b.t.Context(), "captain", types.MergePatchType, scaled, metav1.PatchOptions{}); err != nil {
		b.t.Fatal(err)
	}
	b.restored(one, true)
	b.has("captain", 3, false)
	if err := pauseAs(one); err != nil {
		b.t.Fatal(err)
	}
	if err := b.client.Resource(deployments).Namespace("default").Delete(b.t.Context(), "captain", metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
	b.restored(one, false)
	if err := pauseAs(one); !errors.Is(err, pause.ErrNotFound) {
		b.t.Errorf("got %v", err)
	}
	if err := os.WriteFile(two, []byte("{}"), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if _, err := pause.Read(two); err == nil || !strings.Contains(err.Error(), two) {
		b.t.Errorf("a damaged record gives %v", err)
	}
}

// owners returns the field managers of a Deployment with their fields, one per line.
func (b *bench) owners(name string) string {
	b.t.Helper()
	var lines strings.Builder
	for _, e := range b.get(deployments, name).GetManagedFields() {
		if e.Subresource == "" {
			fmt.Fprintln(&lines, e.Manager, e.Operation, e.APIVersion, e.FieldsV1)
		}
	}
	return lines.String()
}

// pausedLate sends the request that pauses a Deployment only after the Deployment was restored.
func (b *bench) pausedLate(r pause.Record, file string) {
	b.t.Helper()
	var late func() (*http.Response, error)
	config := rest.CopyConfig(b.admin)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method != http.MethodPatch {
				return next.RoundTrip(r)
			}
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			late = func() (*http.Response, error) {
				again := r.Clone(b.t.Context())
				again.Body = io.NopCloser(bytes.NewReader(body))
				return next.RoundTrip(again)
			}
			return nil, errors.New("the network is slow")
		})
	})
	slow, err := dynamic.NewForConfig(config)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := pause.Pause(b.t.Context(), slow, file, &r); err == nil || late == nil {
		b.t.Fatalf("pausing without an answer gives %v", err)
	}
	b.restored(file, true)
	resp, err := late()
	if err != nil {
		b.t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusConflict {
		b.t.Errorf("the late request gets %s", resp.Status)
	}
	b.has("captain", 2, false)
}

const lakeInstall = `
-- config/default/kustomization.yaml --
resources: [../crd/bases/ships.yaml, ../rbac/rbac.yaml, ../webhook/manifests.yaml, manager.yaml]
-- config/default/manager.yaml --
apiVersion: apps/v1
kind: Deployment
metadata: {name: lake, namespace: default}
spec:
  selector: {matchLabels: {app: lake}}
  template:
    metadata: {labels: {app: lake}}
    spec:
      serviceAccountName: manager
      containers: [{name: manager, image: "example.com/lake:v1"}]
`

// existingCluster runs the same project with another group against the plane of the first session.
func existingCluster(b *bench) {
	b.deploy("lake")
	c := &bench{t: b.t, dir: b.t.TempDir(), rounds: make(chan devloop.Report, 100), log: trace.NewLog(time.Now()), client: b.client}
	c.writeProject(lakeInstall, func(text string) string {
		text = strings.ReplaceAll(text, "sea.example.com", "lake.example.com")
		if before, after, ok := strings.Cut(text, "  conversion:\n"); ok {
			_, versions, _ := strings.Cut(after, "  versions:\n")
			text = before + "  versions:\n" + versions
		}
		return strings.ReplaceAll(text, "metadata: {name: ships}", "metadata: {name: lakes}")
	})
	record := filepath.Join(b.t.TempDir(), "paused.json")
	s, err := Start(b.t.Context(), Options{
		Project: project.Options{Dir: c.dir, Kustomization: "config/default"}, Dir: b.t.TempDir(), Output: c, Observer: c, Lose: c.agrees,
		Env: func() ([]string, error) { return c.env() }, Recording: Recording{Log: c.log}, Cluster: &Cluster{Config: b.admin, Name: "test", Record: record},
	})
	if err != nil {
		b.t.Fatalf("%v\n%s", err, c.said.String())
	}
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stop := sync.OnceValue(func() error { cancel(); return errors.Join(<-ended, s.Stop()) })
	b.t.Cleanup(func() { _ = stop() }) // if the test ends early
	c.round("apply restart samples")
	c.hears("no CustomResourceDefinition ships.lake.example.com, so it is installed")
	c.hears("Deployment default/lake is scaled to 0")
	c.hears("the cluster's webhooks stay as they are")
	b.has("lake", 0, true)
	lakes := schema.GroupVersionResource{Group: "lake.example.com", Version: "v1", Resource: "ships"}
	if _, err := b.client.Resource(lakes).Namespace("default").Create(b.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "lake.example.com/v1", "kind": "Ship", "metadata": map[string]any{"name": "swan"}, "spec": map[string]any{"masts": int64(20)},
	}}, metav1.CreateOptions{}); err != nil {
		b.t.Fatalf("the webhooks of the manifests are applied: %v", err)
	}
	c.prints("greeted swan with ahoy 200")
	const file = "config/crd/bases/ships.yaml"
	c.replace(file, "              port: {type: string}\n", "              port: {type: string}\n              keel: {type: string}\n")
	c.round("apply")
	if properties := b.schemaOf("ships.lake.example.com"); properties["keel"] == nil {
		b.t.Errorf("the edited CRD is not applied: %v", properties)
	}
	// Changes that others have made in the cluster are not a loss.
	b.addProperty("ships.lake.example.com", "anchor")
	c.write(".env", "GREETING=-there")
	c.round("apply restart")
	if len(c.losses) > 0 {
		b.t.Errorf("a CRD that is not applied loses %q", c.losses)
	}
	if err := os.Remove(record); err != nil { // by git clean, for example
		b.t.Fatal(err)
	}
	if err := stop(); err != nil {
		b.t.Error(err)
	}
	c.hears("Deployment default/lake is restored")
	b.has("lake", 2, false)
}

// addProperty adds a property of spec to the first version of a CRD, and sets it in an object.
func (b *bench) addProperty(name, property string) {
	b.t.Helper()
	add := fmt.Sprintf(`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/%s","value":{"type":"string"}}]`, property)
	if _, err := b.client.Resource(crdResource).Patch(b.t.Context(), name, types.JSONPatchType, []byte(add), metav1.PatchOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

// schemaOf returns the properties of spec in the first version of a CRD.
func (b *bench) schemaOf(name string) map[string]any {
	b.t.Helper()
	crd, err := b.client.Resource(crdResource).Get(b.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	first, _ := versions[0].(map[string]any)
	properties, _, _ := unstructured.NestedMap(first, "schema", "openAPIV3Schema", "properties", "spec", "properties")
	return properties
}
