package remove

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/inventory"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return &u
}

func TestFinalizersNeedAControllerThatWorks(t *testing.T) {
	const (
		works  = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: manager}, status: {availableReplicas: 1}}"
		agent  = "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, status: {numberAvailable: 2}}"
		paused = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: paused}, status: {observedGeneration: 1}}"
		plain  = "{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: a}}"
		held   = "{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: b, finalizers: [sea.example.com/cargo]}}"
		owned  = "{apiVersion: sea.example.com/v1, kind: Ship, metadata: {name: c, finalizers: [foregroundDeletion]}}"
	)
	for name, c := range map[string]struct {
		workloads, custom []string
		want              string
	}{
		"it works":                {[]string{works, agent}, []string{plain, held}, ""},
		"no finalizers":           {[]string{paused}, []string{plain}, ""},
		"only the collector's":    {[]string{paused}, []string{owned}, ""},
		"no replicas":             {[]string{works, paused}, []string{plain, held}, "Deployment paused is not available:\n  Ship b (sea.example.com/cargo)\n"},
		"no workload":             {nil, []string{held}, "the deployment has no workload"},
		"nothing that it manages": {nil, nil, ""},
	} {
		p := &Plan{custom: []customKind{{}}}
		for _, text := range c.workloads {
			p.objects = append(p.objects, object(t, text))
		}
		for _, text := range c.custom {
			p.custom[0].objects = append(p.custom[0].objects, *object(t, text))
		}
		err := p.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheNamespaceOfTheInventoryIsDeletedLast(t *testing.T) {
	none := cluster.Cluster{Dynamic: fake.NewSimpleDynamicClient(runtime.NewScheme()), Mapper: resettable{meta.NewDefaultRESTMapper(nil)}}
	i, err := inventory.Read(context.Background(), &none, "sea", "sea")
	if err != nil {
		t.Fatal(err)
	}
	p := &Plan{inventory: i}
	for _, text := range []string{
		"{apiVersion: v1, kind: Namespace, metadata: {name: sea}}", "{apiVersion: v1, kind: Namespace, metadata: {name: other}}",
		"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ships}}",
		"{apiVersion: v1, kind: ServiceAccount, metadata: {name: manager}}", "{apiVersion: v1, kind: Service, metadata: {name: hooks}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: manager}}",
		"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: ships}}",
	} {
		p.objects = append(p.objects, object(t, text))
	}
	var got [][]string
	for _, s := range (&removal{Plan: p}).stages() {
		var names []string
		for _, u := range s.objects {
			names = append(names, cluster.IDOf(u).String())
		}
		got = append(got, names)
	}
	want := [][]string{
		{"ValidatingWebhookConfiguration ships"}, {"Deployment manager"}, {"Service hooks", "ServiceAccount manager"},
		{"CustomResourceDefinition ships"}, {"Namespace other"}, {"Namespace sea"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// resettable is a mapper that knows no kinds.
type resettable struct{ meta.RESTMapper }

func (resettable) Reset() {}

func (resettable) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	return nil, &meta.NoKindMatchError{GroupKind: kind}
}
