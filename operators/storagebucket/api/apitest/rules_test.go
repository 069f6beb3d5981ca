package apitest

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rule is one rule of the schema. A rule holds the fields of an object that just satisfies the
// rule, the fields of an object that breaks it, and the API server's complete error message, line
// by line.
type rule struct {
	name      string
	good, bad fields
	want      string
}

// sameInV1alpha1 reports whether the rule concerns a field that has the same name
// in v1alpha1.
func (r rule) sameInV1alpha1() bool {
	for _, path := range []string{"spec: ", "spec.bucketName", "spec.store.", "spec.probe.interval"} {
		if strings.HasPrefix(r.want, path) {
			return false
		}
	}
	return true
}

// holds checks the rules for one kind of object with dry-run requests.
func holds(gvk schema.GroupVersionKind, base fields, rules []rule) {
	var namespace string
	BeforeAll(func(ctx context.Context) { namespace = newNamespace(ctx) })
	for _, r := range rules {
		It("knows "+r.name, func(ctx context.Context) {
			good := object(gvk, namespace, "photos", base, r.good)
			Expect(api.Create(ctx, good, client.DryRunAll)).To(Succeed())
			bad := object(gvk, namespace, "photos", base, r.bad)
			err := api.Create(ctx, bad, client.DryRunAll)
			Expect(refusals(err)).To(Equal(r.want))
		})
	}
}
