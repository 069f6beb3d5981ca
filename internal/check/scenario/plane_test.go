package scenario

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/check/output"
)

// plane starts a real plane with the binary named by the environment variable KOBOSHI.
func plane(t *testing.T) Cluster {
	t.Helper()
	program := os.Getenv("KOBOSHI")
	if program == "" {
		t.Skip("KOBOSHI is not set; set it to the path of a koboshi binary")
	}
	dir := t.TempDir()
	ready, kubeconfig := filepath.Join(dir, "ready"), filepath.Join(dir, "kubeconfig")
	cmd := exec.Command(program, "up", "--profile", "gc", "--ephemeral", "--die-with-parent", "--ready-file", ready, "--kubeconfig", kubeconfig)
	cmd.Dir = dir
	printed := output.NewTail(mostTail)
	cmd.Stdout, cmd.Stderr = printed, printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	until(t, func() bool { _, err := os.Stat(ready); return err == nil })

	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 500, 500
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	found, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return Cluster{Client: client, Mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found)), Kubeconfig: kubeconfig}
}

func TestScenariosOnARealPlane(t *testing.T) {
	c := plane(t)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	t.Run("a written one", func(t *testing.T) { written(ctx, t, c) })
	t.Run("generated ones", func(t *testing.T) { generated(ctx, t, c) })
	t.Run("the health of Pods", func(t *testing.T) { health(ctx, t, c) })
}

const story = `
apiVersion: check.koboshi.dev/v1
kind: Scenario
name: story
endpoints: [{name: store, url: "http://127.0.0.1:1"}]
given:
- file: widgets.yaml # the CRD is not served yet when the widget is applied
- {apiVersion: example.com/v1, kind: Widget, metadata: {name: zero}, spec: {size: small}}
steps:
- name: create
  apply:
  - {apiVersion: v1, kind: Namespace, metadata: {name: shop}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: shop}, data: {url: "$(endpoint.store)/v1"}}
  expect:
  - {apiVersion: v1, kind: ConfigMap, name: settings, namespace: shop, field: data.url, equals: "http://proxy/v1"}
  - {apiVersion: v1, kind: ConfigMap, name: settings, absent: true}
- name: merge
  patch: {apiVersion: example.com/v1, kind: Widget, name: zero, merge: {spec: {size: large}}}
  expect:
  - {apiVersion: example.com/v1, kind: Widget, name: zero, field: spec.size, equals: large}
- name: status
  patch:
    apiVersion: example.com/v1
    kind: Widget
    name: zero
    subresource: status
    json: [{op: add, path: /status, value: {conditions: [{type: Ready, status: "True"}]}}]
  wait:
  - {apiVersion: example.com/v1, kind: Widget, name: zero, status: Ready}
- name: scale
  scale: {apiVersion: example.com/v1, kind: Widget, name: zero, replicas: 3}
  expect:
  - {apiVersion: example.com/v1, kind: Widget, name: zero, field: spec.replicas, equals: 3}
- name: too-much
  scale: {apiVersion: example.com/v1, kind: Widget, name: zero, replicas: 9}
- name: of-another-type
  apply:
  - {apiVersion: example.com/v1, kind: Widget, metadata: {name: zero}, spec: {size: [small]}}
- name: end
  delete: {apiVersion: example.com/v1, kind: Widget, name: zero, propagation: Background}
- name: end-of-the-namespace
  delete: {apiVersion: v1, kind: Namespace, name: shop}
  expect:
  - {apiVersion: v1, kind: ConfigMap, name: settings, namespace: shop, absent: true}
`

func written(ctx context.Context, t *testing.T, c Cluster) {
	all, err := Parse("testdata/story.yaml", []byte(story))
	if err != nil {
		t.Fatal(err)
	}
	s := all[0]
	c.Endpoints = map[string]string{"store": "http://proxy"}
	if err := s.Prepare(ctx, c); err != nil {
		t.Fatal(err)
	}
	for i := range s.Steps {
		step := &s.Steps[i]
		err := step.Do(ctx, c)
		if step.Name == "too-much" || step.Name == "of-another-type" {
			if !Refused(err) {
				t.Errorf("%s was not refused: %v", step.Name, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := step.Await(ctx, c); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range step.Check(ctx, c) {
			t.Errorf("%s: %s", step.Name, wrong)
		}
	}
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	secret, err := c.Client.Resource(gvr).Namespace("default").Get(ctx, "paint", metav1.GetOptions{})
	if err != nil || secret.GetManagedFields()[0].Manager != fieldManager || secret.GetManagedFields()[0].Operation != metav1.ManagedFieldsOperationApply {
		t.Errorf("the given secret is not applied by %s: %v, %v", fieldManager, secret.GetManagedFields(), err)
	}
}

// generated performs the scenarios for the samples of the operators without their
// controllers. The server must accept all values that were invented from a schema.
func generated(ctx context.Context, t *testing.T, c Cluster) {
	crds := readCRDs(t, "testdata/widgets.yaml")[:1]
	samples := []Sample{{File: "sample.yaml", Objects: objectsOf(t, "testdata/sample.yaml")}}
	for _, operator := range []string{"storagebucket", "markdownview"} {
		crds = append(crds, operatorCRDs(t, operator)...)
		samples = append(samples, readSamples(t, operator)...)
	}
	for _, crd := range crds {
		// The webhooks of the operators do not run here.
		crd.Spec.Conversion = nil
		crd.APIVersion, crd.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
		var object map[string]any
		if err := json.Unmarshal(mustJSON(crd), &object); err != nil {
			t.Fatal(err)
		}
		delete(object, "status")
		step := Step{Name: "install", Apply: []Manifest{{Object: object}}}
		if err := step.Do(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	all, _, err := Generate(samples, crds, GenerateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for _, s := range all {
		if strings.Contains(s.Name, "v1alpha1") {
			continue // it needs the conversion webhook
		}
		if err := s.Prepare(ctx, c); err != nil {
			t.Errorf("%v", err)
			continue
		}
		for i := range s.Steps {
			steps++
			step := &s.Steps[i]
			if err := step.Do(ctx, c); err != nil {
				t.Errorf("%s: %v\n%s", s.Name, err, mustJSON(step.Patch))
			}
			if err := step.Await(ctx, c); err != nil {
				t.Fatal(err)
			}
		}
		remove(ctx, t, c, s)
	}
	t.Logf("%d scenarios with %d steps", len(all), steps)
}

// remove deletes all objects that a scenario leaves behind.
func remove(ctx context.Context, t *testing.T, c Cluster, s *Scenario) {
	t.Helper()
	refs := []ObjectRef{refOf(s.Steps[0].Apply[0].Object)}
	for _, m := range s.Given {
		refs = append(refs, refOf(m.Object))
	}
	for _, ref := range refs {
		step := Step{Name: "remove", Delete: &Delete{ObjectRef: ref}}
		if err := step.Do(ctx, c); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
}

func objectsOf(t *testing.T, file string) []unstructured.Unstructured {
	t.Helper()
	objects, err := Manifest{File: file}.objects()
	if err != nil {
		t.Fatal(err)
	}
	var all []unstructured.Unstructured
	for _, o := range objects {
		all = append(all, unstructured.Unstructured{Object: o})
	}
	return all
}
