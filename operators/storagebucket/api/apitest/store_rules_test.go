package apitest

import (
	. "github.com/onsi/ginkgo/v2"
)

var storeBase = fields{"endpoint": "https://s3.example.com", "credentials.secretRef.name": "keys"}

var storeRules = []rule{
	{"that an endpoint is needed", fields{"endpoint": "https://h"}, fields{"endpoint": nil}, `spec.endpoint: Required value`},
	{"that an endpoint is not empty", fields{"endpoint": "http://h"}, fields{"endpoint": ""}, `spec.endpoint: Invalid value: "": spec.endpoint in body should be at least 1 chars long
spec.endpoint: Invalid value: "": must be an http or https URL, for example https://s3.example.com`},
	{"that an endpoint has a scheme", fields{"endpoint": "http://127.0.0.1:9000"}, fields{"endpoint": "127.0.0.1:9000"}, `spec.endpoint: Invalid value: "127.0.0.1:9000": must be an http or https URL, for example https://s3.example.com`},
	{"the scheme of an endpoint", fields{"endpoint": "http://[::1]:9000"}, fields{"endpoint": "s3://photos"}, `spec.endpoint: Invalid value: "s3://photos": must be an http or https URL, for example https://s3.example.com`},
	{"that an endpoint names a host", fields{"endpoint": "https://h/s3"}, fields{"endpoint": "https:///s3"}, `spec.endpoint: Invalid value: "https:///s3": must name a host`},
	{"that an endpoint has no user", fields{"endpoint": "https://h/"}, fields{"endpoint": "https://me@s3.example.com"}, `spec.endpoint: Invalid value: "https://me@s3.example.com": must not contain a user or a password: put credentials in the Secret named by credentials.secretRef`},
	{"that an endpoint has no query", fields{"endpoint": "https://h:1"}, fields{"endpoint": "https://s3.example.com?x=1"}, `spec.endpoint: Invalid value: "https://s3.example.com?x=1": must not contain a query or a fragment`},
	{"that an endpoint has no fragment", fields{"endpoint": "https://h:2"}, fields{"endpoint": "https://s3.example.com#x"}, `spec.endpoint: Invalid value: "https://s3.example.com#x": must be an http or https URL, for example https://s3.example.com
spec.endpoint: Invalid value: "https://s3.example.com#x": must not contain a query or a fragment`},
	{"the length of an endpoint", fields{"endpoint": "https://" + long(1016)}, fields{"endpoint": "https://" + long(1017)}, `spec.endpoint: Too long: may not be more than 1024 bytes`},
	{"the letters of a region", fields{"region": "eu-west-1"}, fields{"region": "eu_west"}, `spec.region: Invalid value: "eu_west": spec.region in body should match '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$'`},
	{"that a region is not empty", fields{"region": "e"}, fields{"region": ""}, `spec.region: Invalid value: "": spec.region in body should be at least 1 chars long`},
	{"the length of a region", fields{"region": long(63)}, fields{"region": long(64)}, `spec.region: Too long: may not be more than 63 bytes`},
	{"that pathStyle is a boolean", fields{"pathStyle": false}, fields{"pathStyle": "no"}, `spec.pathStyle: Invalid value: "string": spec.pathStyle in body must be of type boolean: "string"`},
	{"where certificates may be", fields{"caBundle": obj{"name": "ca", "kind": "Secret"}}, fields{"caBundle": obj{"name": "ca", "kind": "File"}}, `spec.caBundle.kind: Unsupported value: "File": supported values: "ConfigMap", "Secret"`},
	{"that certificates have a name", fields{"caBundle": obj{"name": "ca"}}, fields{"caBundle": obj{"key": "ca.crt"}}, `spec.caBundle.name: Required value`},
	{"the letters of the certificates' name", fields{"caBundle": obj{"name": "a.b"}}, fields{"caBundle": obj{"name": "a/b"}}, `spec.caBundle.name: Invalid value: "a/b": spec.caBundle.name in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'`},
	{"the length of the certificates' name", fields{"caBundle": obj{"name": long(253)}}, fields{"caBundle": obj{"name": long(254)}}, `spec.caBundle.name: Too long: may not be more than 253 bytes`},
	{"the letters of the certificates' key", fields{"caBundle": obj{"name": "ca", "key": "CA_1.pem"}}, fields{"caBundle": obj{"name": "ca", "key": "a/b"}}, `spec.caBundle.key: Invalid value: "a/b": spec.caBundle.key in body should match '^[-._a-zA-Z0-9]+$'`},
	{"the length of the certificates' key", fields{"caBundle": obj{"name": "ca", "key": long(253)}}, fields{"caBundle": obj{"name": "ca", "key": long(254)}}, `spec.caBundle.key: Too long: may not be more than 253 bytes`},
	{"that credentials are needed", nil, fields{"credentials": nil}, `spec.credentials: Required value`},
	{"the sources of credentials", fields{"credentials": obj{"source": "Environment"}}, fields{"credentials": obj{"source": "File"}}, `spec.credentials.source: Unsupported value: "File": supported values: "Secret", "Environment"`},
	{"that source Secret needs a Secret", fields{"credentials": obj{"source": "Secret", "secretRef": obj{"name": "keys"}}}, fields{"credentials": obj{}}, `spec.credentials: Invalid value: secretRef is required for source Secret, and not allowed for source Environment`},
	{"that source Environment has no Secret", fields{"credentials": obj{"source": "Environment"}},
		fields{"credentials": obj{"source": "Environment", "secretRef": obj{"name": "keys"}}}, `spec.credentials: Invalid value: secretRef is required for source Secret, and not allowed for source Environment`},
	{"that a Secret has a name", fields{"credentials.secretRef.name": "k"}, fields{"credentials.secretRef.name": ""}, `spec.credentials.secretRef.name: Invalid value: "": spec.credentials.secretRef.name in body should be at least 1 chars long`},
	{"the letters of a Secret's name", fields{"credentials.secretRef.name": "a.b"}, fields{"credentials.secretRef.name": "a b"}, `spec.credentials.secretRef.name: Invalid value: "a b": spec.credentials.secretRef.name in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'`},
	{"the length of a Secret's name", fields{"credentials.secretRef.name": long(253)}, fields{"credentials.secretRef.name": long(254)}, `spec.credentials.secretRef.name: Too long: may not be more than 253 bytes`},
	{"the letters of a namespace", fields{"allowedNamespaces": []any{"*", "shop-1"}}, fields{"allowedNamespaces": []any{"shop-*"}}, `spec.allowedNamespaces[0]: Invalid value: "shop-*": spec.allowedNamespaces[0] in body should match '^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$'`},
	{"the length of a namespace", fields{"allowedNamespaces": []any{long(63)}}, fields{"allowedNamespaces": []any{long(64)}}, `spec.allowedNamespaces[0]: Too long: may not be more than 63 bytes`},
	{"that a namespace is allowed once", fields{"allowedNamespaces": []any{"a", "b"}}, fields{"allowedNamespaces": []any{"a", "a"}}, `spec.allowedNamespaces[1]: Duplicate value: "a"`},
	{"how many namespaces may be listed", fields{"allowedNamespaces": many(256, func(i int) any { return "ns" + string(rune('a'+i/26)) + string(rune('a'+i%26)) })},
		fields{"allowedNamespaces": many(257, func(i int) any { return "ns" + string(rune('a'+i/26)) + string(rune('a'+i%26)) })}, `spec.allowedNamespaces: Too many: 257: must have at most 256 items`},
	{"that the health interval is a duration", fields{"healthInterval": "1m30s"}, fields{"healthInterval": "soon"}, `spec.healthInterval: Invalid value: "soon": spec.healthInterval in body should match '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'`},
	{"the least health interval", fields{"healthInterval": "1s"}, fields{"healthInterval": "500ms"}, `spec.healthInterval: Invalid value: "500ms": must be 1s to 24h`},
	{"the greatest health interval", fields{"healthInterval": "24h"}, fields{"healthInterval": "25h"}, `spec.healthInterval: Invalid value: "25h": must be 1s to 24h`},
	{"the least rate", fields{"limits.requestsPerSecond": int64(1)}, fields{"limits.requestsPerSecond": int64(0)}, `spec.limits.requestsPerSecond: Invalid value: 0: spec.limits.requestsPerSecond in body should be greater than or equal to 1`},
	{"the greatest rate", fields{"limits.requestsPerSecond": int64(100000)}, fields{"limits.requestsPerSecond": int64(100001)}, `spec.limits.requestsPerSecond: Invalid value: 100001: spec.limits.requestsPerSecond in body should be less than or equal to 100000`},
	{"the least concurrency", fields{"limits.concurrency": int64(1)}, fields{"limits.concurrency": int64(0)}, `spec.limits.concurrency: Invalid value: 0: spec.limits.concurrency in body should be greater than or equal to 1`},
	{"the greatest concurrency", fields{"limits.concurrency": int64(10000)}, fields{"limits.concurrency": int64(10001)}, `spec.limits.concurrency: Invalid value: 10001: spec.limits.concurrency in body should be less than or equal to 10000`},
}

var _ = Describe("The schema of a v1 ObjectStore", Ordered, ContinueOnFailure, func() {
	holds(storeV1, storeBase, storeRules)
})
