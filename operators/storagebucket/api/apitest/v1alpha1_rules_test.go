package apitest

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	firstSlice = fields{"endpoint": "https://s3.example.com", "bucket": "photos", "credentialsSecretRef.name": "credentials"}
)

// The rules at the top come from the operator's first version, and keep the messages of
// that version.
var v1alpha1Rules = []rule{
	{"that an endpoint is needed", nil, fields{"endpoint": nil}, `spec.endpoint: Required value: endpoint is required without storeRef`},
	{"that an endpoint is not empty", fields{"endpoint": "https://h"}, fields{"endpoint": ""}, `spec.endpoint: Invalid value: "": spec.endpoint in body should be at least 1 chars long
spec.endpoint: Invalid value: "": must be an http or https URL, for example https://s3.example.com`},
	{"that an endpoint has a scheme", fields{"endpoint": "http://127.0.0.1:9000"}, fields{"endpoint": "s3.example.com"}, `spec.endpoint: Invalid value: "s3.example.com": must be an http or https URL, for example https://s3.example.com`},
	{"that a port is no scheme", fields{"endpoint": "http://[::1]:9000"}, fields{"endpoint": "s3.example.com:9000"}, `spec.endpoint: Invalid value: "s3.example.com:9000": must be an http or https URL, for example https://s3.example.com
spec.endpoint: Invalid value: "s3.example.com:9000": must name a host`},
	{"the scheme of an endpoint", fields{"endpoint": "https://x.example.com/storage/v1/s3"}, fields{"endpoint": "ftp://s3.example.com"}, `spec.endpoint: Invalid value: "ftp://s3.example.com": must be an http or https URL, for example https://s3.example.com`},
	{"that an endpoint names a host", fields{"endpoint": "https://h/"}, fields{"endpoint": "https:///photos"}, `spec.endpoint: Invalid value: "https:///photos": must name a host`},
	{"that an endpoint has no user", fields{"endpoint": "https://h:1"}, fields{"endpoint": "https://me@s3.example.com"}, `spec.endpoint: Invalid value: "https://me@s3.example.com": must not contain a user or a password: put credentials in the Secret named by credentialsSecretRef`},
	{"that an endpoint has no password", fields{"endpoint": "https://h:2"}, fields{"endpoint": "https://me:pw@s3.example.com"}, `spec.endpoint: Invalid value: "https://me:pw@s3.example.com": must not contain a user or a password: put credentials in the Secret named by credentialsSecretRef`},
	{"that an endpoint has no query", fields{"endpoint": "https://h:3"}, fields{"endpoint": "https://s3.example.com?x=1"}, `spec.endpoint: Invalid value: "https://s3.example.com?x=1": must not contain a query or a fragment`},
	{"that an endpoint has no fragment", fields{"endpoint": "https://h:4"}, fields{"endpoint": "https://s3.example.com#x"}, `spec.endpoint: Invalid value: "https://s3.example.com#x": must be an http or https URL, for example https://s3.example.com
spec.endpoint: Invalid value: "https://s3.example.com#x": must not contain a query or a fragment`},
	{"the length of an endpoint", fields{"endpoint": "https://" + long(1016)}, fields{"endpoint": "https://" + long(1017)}, `spec.endpoint: Too long: may not be more than 1024 bytes`},
	{"the letters of a region", fields{"region": "eu-west-1"}, fields{"region": "US-EAST-1"}, `spec.region: Invalid value: "US-EAST-1": spec.region in body should match '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$'`},
	{"that a bucket is needed", fields{"bucket": "123"}, fields{"bucket": nil}, `spec.bucket: Required value`},
	{"the least length of a bucket's name", fields{"bucket": "abc"}, fields{"bucket": "ab"}, `spec.bucket: Invalid value: "ab": spec.bucket in body should be at least 3 chars long`},
	{"the greatest length of a bucket's name", fields{"bucket": long(63)}, fields{"bucket": long(64)}, `spec.bucket: Too long: may not be more than 63 bytes`},
	{"the letters of a bucket's name", fields{"bucket": "photos.example.com"}, fields{"bucket": "my_photos"}, `spec.bucket: Invalid value: "my_photos": spec.bucket in body should match '^[a-z0-9][a-z0-9.-]*[a-z0-9]$'`},
	{"that a bucket's name has no two dots in a row", fields{"bucket": "my.photos"}, fields{"bucket": "my..photos"}, `spec.bucket: Invalid value: "my..photos": must not contain two dots in a row`},
	{"that a bucket's name is no address", fields{"bucket": "192.168.5"}, fields{"bucket": "192.168.5.4"}, `spec.bucket: Invalid value: "192.168.5.4": must not have the form of an IPv4 address`},
	{"that credentials are needed", nil, fields{"credentialsSecretRef": nil}, `spec.credentialsSecretRef: Required value: credentialsSecretRef is required without storeRef`},
	{"that credentials have a name", nil, fields{"credentialsSecretRef": obj{}}, `spec.credentialsSecretRef.name: Required value`},
	{"that the credentials' name is not empty", nil, fields{"credentialsSecretRef.name": ""}, `spec.credentialsSecretRef.name: Invalid value: "": spec.credentialsSecretRef.name in body should be at least 1 chars long`},
	{"what a duration is", fields{"probeInterval": "1m30s"}, fields{"probeInterval": "often"}, `spec.probeInterval: Invalid value: "often": spec.probeInterval in body should match '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'`},
	{"that an interval is not negative", fields{"probeInterval": "1.5s"}, fields{"probeInterval": "-5s"}, `spec.probeInterval: Invalid value: "-5s": spec.probeInterval in body should match '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'`},
	{"the least interval", fields{"probeInterval": "1s"}, fields{"probeInterval": "999ms"}, `spec.probeInterval: Invalid value: "999ms": must be at least 1s`},
	{"that an interval is text", nil, fields{"probeInterval": int64(30)}, `spec.probeInterval: Invalid value: "integer": spec.probeInterval in body must be of type string: "integer"`},

	// The rules below were added to v1alpha1 when v1 was introduced.
	{"the greatest interval", fields{"probeInterval": "168h"}, fields{"probeInterval": "169h"}, `spec.probeInterval: Invalid value: "169h": must be at most 168h`},
	{"that a reference has a name", fields{"endpoint": nil, "credentialsSecretRef": nil, "storeRef": obj{"name": "minio"}},
		fields{"endpoint": nil, "credentialsSecretRef": nil, "storeRef": obj{}}, `spec.storeRef.name: Required value`},
	{"that a reference excludes an endpoint", fields{"endpoint": nil, "credentialsSecretRef": nil, "storeRef": obj{"name": "minio", "namespace": "infra"}},
		fields{"credentialsSecretRef": nil, "storeRef": obj{"name": "minio"}}, `spec.storeRef: Invalid value: storeRef excludes endpoint, region and credentialsSecretRef: the ObjectStore provides them`},
	{"that a reference excludes credentials", fields{"endpoint": nil, "credentialsSecretRef": nil, "storeRef": obj{"name": "minio"}},
		fields{"endpoint": nil, "storeRef": obj{"name": "minio"}}, `spec.storeRef: Invalid value: storeRef excludes endpoint, region and credentialsSecretRef: the ObjectStore provides them`},
	{"that a reference excludes a region", fields{"endpoint": nil, "credentialsSecretRef": nil, "storeRef": obj{"name": "minio"}},
		fields{"endpoint": nil, "credentialsSecretRef": nil, "region": "eu", "storeRef": obj{"name": "minio"}}, `spec.storeRef: Invalid value: storeRef excludes endpoint, region and credentialsSecretRef: the ObjectStore provides them`},
}

var _ = Describe("The schema of a v1alpha1 StorageBucket", Ordered, ContinueOnFailure, func() {
	holds(bucketV1alpha1, firstSlice, v1alpha1Rules)
})

// inV1alpha1 converts a v1 object to v1alpha1.
func inV1alpha1(v1 *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	u := v1.DeepCopy()
	u.SetGroupVersionKind(bucketV1alpha1)
	for _, move := range []struct{ to, from string }{
		{"bucket", "bucketName"},
		{"endpoint", "store.endpoint"},
		{"region", "store.region"},
		{"credentialsSecretRef", "store.credentialsSecretRef"},
		{"probeInterval", "probe.interval"},
	} {
		from := append([]string{"spec"}, strings.Split(move.from, ".")...)
		if value, ok, _ := unstructured.NestedFieldCopy(u.Object, from...); ok {
			set(u, fields{move.to: value, move.from: nil})
		}
	}
	set(u, fields{"store": nil})
	return u
}

// The API server checks a request only by the rules of the request's version. If v1alpha1
// lacked a rule of v1, the rule could be bypassed through v1alpha1.
var _ = Describe("The schema of a v1alpha1 StorageBucket, as v1's,", Ordered, ContinueOnFailure, func() {
	var namespace string
	BeforeAll(func(ctx context.Context) { namespace = newNamespace(ctx) })

	for _, r := range bucketRules {
		It("knows "+r.name, func(ctx context.Context) {
			good := inV1alpha1(object(bucketV1, namespace, "photos", inStore, r.good))
			Expect(api.Create(ctx, good, client.DryRunAll)).To(Succeed())
			bad := inV1alpha1(object(bucketV1, namespace, "photos", inStore, r.bad))
			got := refusals(api.Create(ctx, bad, client.DryRunAll))
			if r.sameInV1alpha1() {
				Expect(got).To(Equal(strings.ReplaceAll(r.want, "than interval", "than probeInterval")))
			}
		})
	}
})
