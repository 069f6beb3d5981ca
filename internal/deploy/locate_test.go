package deploy

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/order"
)

func TestOperatorsInOneNamespaceHaveInventoriesOfTheirOwn(t *testing.T) {
	const (
		role    = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: lake}}\n---\n"
		manager = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: manager, namespace: sea}}\n---\n"
		other   = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: other, namespace: sea}}\n---\n"
		none    = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: homeless}}\n---\n"
	)
	for manifest, c := range map[string]struct{ given, namespace, name string }{
		role + manager + other: {"", "sea", "manager"},
		other + role:           {"", "sea", "other"},
		none:                   {"", "context", "homeless"},
		manager + role:         {"given", "sea", "given"},
		role:                   {"given", "context", "given"},
	} {
		o := Options{Cluster: &cluster.Cluster{Namespace: "context"}, Name: c.given, Objects: parsed(t, manifest)}
		if namespace, err := locate(&o); err != nil || namespace != c.namespace || o.Name != c.name {
			t.Errorf("%s: %s in %s, %v", manifest, o.Name, namespace, err)
		}
	}
	o := Options{Cluster: &cluster.Cluster{Namespace: "context"}, Objects: parsed(t, role)}
	if _, err := locate(&o); err == nil || !strings.Contains(err.Error(), "--name") {
		t.Errorf("%v", err)
	}
}

func parsed(t *testing.T, manifest string) []unstructured.Unstructured {
	t.Helper()
	objects, err := order.Parse("manifest", []byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}
