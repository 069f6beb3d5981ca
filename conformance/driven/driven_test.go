// Package driven is the test suite with which the tests of koboshi check --driver drive the
// controller in conformance/checked. Like the suites of chainsaw and kuttl, it works in a namespace
// with a random name, and deletes everything at its end.
//
//	create a Widget ──▶ two children, and a status ──▶ change its size ──▶ the same ──▶ delete it
package driven

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	widgets    = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// suite is a connection to the cluster, and the namespace of one test.
type suite struct {
	*testing.T
	client    dynamic.Interface
	namespace string
	patience  time.Duration
}

// begin creates a namespace. Without DRIVEN, which holds the time to wait for the controller, the test
// is skipped, because it must not run in just any cluster.
func begin(t *testing.T) *suite {
	patience, err := time.ParseDuration(os.Getenv("DRIVEN"))
	if err != nil {
		t.Skip("this suite is for koboshi check --driver")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("the seed of the name is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := &suite{t, client, fmt.Sprintf("driven-%s-%s", word(random), word(random)), patience}
	s.create(namespaces, "", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": s.namespace}})
	t.Cleanup(func() {
		if err := client.Resource(namespaces).Delete(context.Background(), s.namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		s.eventually("the namespace to disappear", s.gone(namespaces, "", s.namespace))
	})
	return s
}

// word returns a random word of two to nine letters, as in the names that some suites make up.
func word(random *rand.Rand) string {
	letters := make([]byte, 2+random.IntN(8))
	for i := range letters {
		letters[i] = byte('a' + random.IntN(26))
	}
	return string(letters)
}

func (s *suite) create(resource schema.GroupVersionResource, namespace string, object map[string]any) {
	s.Helper()
	if _, err := s.client.Resource(resource).Namespace(namespace).Create(context.Background(), &unstructured.Unstructured{Object: object}, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// eventually waits for a condition, with the usual pauses of such suites.
func (s *suite) eventually(what string, holds wait.ConditionWithContextFunc) {
	s.Helper()
	if err := wait.PollUntilContextTimeout(context.Background(), 250*time.Millisecond, s.patience, true, holds); err != nil {
		s.Fatalf("waited for %s: %v", what, err)
	}
}

func (s *suite) gone(resource schema.GroupVersionResource, namespace, name string) wait.ConditionWithContextFunc {
	return func(ctx context.Context) (bool, error) {
		_, err := s.client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	}
}

// has returns the condition that a field of an object has a value.
func (s *suite) has(resource schema.GroupVersionResource, name, want string, field ...string) wait.ConditionWithContextFunc {
	return func(ctx context.Context) (bool, error) {
		object, err := s.client.Resource(resource).Namespace(s.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, nil // it does not exist yet
		}
		got, _, err := unstructured.NestedString(object.Object, field...)
		return got == want, err
	}
}

// reaches waits until the Widget and its children have a size.
func (s *suite) reaches(size string) {
	s.Helper()
	for _, child := range []string{"demo-first", "demo-second"} {
		s.eventually(child+" to be "+size, s.has(configMaps, child, size, "data", "size"))
	}
	s.eventually("the status to be "+size, s.has(widgets, "demo", size, "status", "size"))
}

func TestWidgetsHaveTwoChildren(t *testing.T) {
	s := begin(t)
	s.create(widgets, s.namespace, map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "demo"}, "spec": map[string]any{"size": "small"},
	})
	s.reaches("small")
	patch := []byte(`{"spec":{"size":"large"}}`)
	if _, err := s.client.Resource(widgets).Namespace(s.namespace).Patch(context.Background(), "demo", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.reaches("large")
	if err := s.client.Resource(widgets).Namespace(s.namespace).Delete(context.Background(), "demo", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the children to disappear", s.gone(configMaps, s.namespace, "demo-second"))
}
