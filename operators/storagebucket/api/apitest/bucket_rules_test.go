package apitest

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
)

func long(n int) string { return strings.Repeat("x", n) }

// many returns a list of n values.
func many(n int, f func(int) any) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = f(i)
	}
	return list
}

func tags(n int) map[string]any {
	m := map[string]any{}
	for i := range n {
		m[fmt.Sprint("tag", i)] = "v"
	}
	return m
}

// one returns a list with one object: the base with these changes. A nil value removes
// the field.
func one(base map[string]any, change map[string]any) []any {
	item := map[string]any{}
	for _, layer := range []map[string]any{base, change} {
		for k, v := range layer {
			item[k] = v
			if v == nil {
				delete(item, k)
			}
		}
	}
	return []any{item}
}

func lifecycle(change map[string]any) []any {
	return one(map[string]any{"id": "old", "expirationDays": int64(30)}, change)
}

func cors(change map[string]any) []any {
	return one(map[string]any{"allowedOrigins": []any{"https://example.com"}, "allowedMethods": []any{"GET"}}, change)
}

var (
	inStore = fields{"storeRef.name": "minio", "bucketName": "photos"}
	inline  = map[string]any{"endpoint": "https://s3.example.com", "credentialsSecretRef": map[string]any{"name": "keys"}}
)

func inlineWith(field string, value any) fields {
	return fields{"storeRef": nil, "store": one(inline, map[string]any{field: value})[0]}
}

type obj = map[string]any

var bucketRules = []rule{
	// The bucket.
	{"the least length of a bucket's name", fields{"bucketName": "abc"}, fields{"bucketName": "ab"}, `spec.bucketName: Invalid value: "ab": spec.bucketName in body should be at least 3 chars long`},
	{"the greatest length of a bucket's name", fields{"bucketName": long(63)}, fields{"bucketName": long(64)}, `spec.bucketName: Too long: may not be more than 63 bytes`},
	{"the letters of a bucket's name", fields{"bucketName": "photos-1.example"}, fields{"bucketName": "Photos"}, `spec.bucketName: Invalid value: "Photos": spec.bucketName in body should match '^[a-z0-9][a-z0-9.-]*[a-z0-9]$'`},
	{"that a bucket's name ends with a letter or digit", fields{"bucketName": "photos-1"}, fields{"bucketName": "photos-"}, `spec.bucketName: Invalid value: "photos-": spec.bucketName in body should match '^[a-z0-9][a-z0-9.-]*[a-z0-9]$'`},
	{"that a bucket's name has no two dots in a row", fields{"bucketName": "my.photos"}, fields{"bucketName": "my..photos"}, `spec.bucketName: Invalid value: "my..photos": must not contain two dots in a row`},
	{"that a bucket's name is no address", fields{"bucketName": "192.168.5.4.x"}, fields{"bucketName": "192.168.5.4"}, `spec.bucketName: Invalid value: "192.168.5.4": must not have the form of an IPv4 address`},

	// The store.
	{"that a store is needed", nil, fields{"storeRef": nil}, `spec: Invalid value: exactly one of storeRef and store is required`},
	{"that one store is enough", fields{"storeRef": nil, "store": inline}, fields{"store": inline}, `spec: Invalid value: exactly one of storeRef and store is required`},
	{"that a reference has a name", fields{"storeRef": obj{"name": "m"}}, fields{"storeRef": obj{"namespace": "x"}}, `spec.storeRef.name: Required value`},
	{"that a reference's name is not empty", fields{"storeRef.name": "m"}, fields{"storeRef.name": ""}, `spec.storeRef.name: Invalid value: "": spec.storeRef.name in body should be at least 1 chars long`},
	{"the letters of a reference's name", fields{"storeRef.name": "a.b-c"}, fields{"storeRef.name": "a_b"}, `spec.storeRef.name: Invalid value: "a_b": spec.storeRef.name in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'`},
	{"the length of a reference's name", fields{"storeRef.name": long(253)}, fields{"storeRef.name": long(254)}, `spec.storeRef.name: Too long: may not be more than 253 bytes`},
	{"the letters of a namespace", fields{"storeRef.namespace": "a-b"}, fields{"storeRef.namespace": "a.b"}, `spec.storeRef.namespace: Invalid value: "a.b": spec.storeRef.namespace in body should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'`},
	{"the length of a namespace", fields{"storeRef.namespace": long(63)}, fields{"storeRef.namespace": long(64)}, `spec.storeRef.namespace: Too long: may not be more than 63 bytes`},
	{"that an inline store has an endpoint", inlineWith("region", "eu-west-1"), inlineWith("endpoint", nil), `spec.store.endpoint: Required value`},
	{"that an endpoint has a scheme", inlineWith("endpoint", "http://127.0.0.1:9000"), inlineWith("endpoint", "s3.example.com"), `spec.store.endpoint: Invalid value: "s3.example.com": must be an http or https URL, for example https://s3.example.com`},
	{"the scheme of an endpoint", inlineWith("endpoint", "http://[::1]:9000"), inlineWith("endpoint", "ftp://s3.example.com"), `spec.store.endpoint: Invalid value: "ftp://s3.example.com": must be an http or https URL, for example https://s3.example.com`},
	{"that an endpoint names a host", inlineWith("endpoint", "https://h/a/b"), inlineWith("endpoint", "https:///photos"), `spec.store.endpoint: Invalid value: "https:///photos": must name a host`},
	{"that an endpoint has no password", inlineWith("endpoint", "https://h"), inlineWith("endpoint", "https://me:pw@s3.example.com"), `spec.store.endpoint: Invalid value: "https://me:pw@s3.example.com": must not contain a user or a password: put credentials in the Secret named by credentialsSecretRef`},
	{"that an endpoint has no query", inlineWith("endpoint", "https://h/"), inlineWith("endpoint", "https://s3.example.com?x=1"), `spec.store.endpoint: Invalid value: "https://s3.example.com?x=1": must not contain a query or a fragment`},
	{"that an endpoint has no fragment", inlineWith("endpoint", "https://h:1"), inlineWith("endpoint", "https://s3.example.com#x"), `spec.store.endpoint: Invalid value: "https://s3.example.com#x": must be an http or https URL, for example https://s3.example.com
spec.store.endpoint: Invalid value: "https://s3.example.com#x": must not contain a query or a fragment`},
	{"the length of an endpoint", inlineWith("endpoint", "https://"+long(1016)), inlineWith("endpoint", "https://"+long(1017)), `spec.store.endpoint: Too long: may not be more than 1024 bytes`},
	{"the letters of a region", inlineWith("region", "eu-1"), inlineWith("region", "EU"), `spec.store.region: Invalid value: "EU": spec.store.region in body should match '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$'`},
	{"the length of a region", inlineWith("region", long(63)), inlineWith("region", long(64)), `spec.store.region: Too long: may not be more than 63 bytes`},
	{"that an inline store has credentials", inlineWith("region", "x"), inlineWith("credentialsSecretRef", nil), `spec.store.credentialsSecretRef: Required value`},
	{"that the credentials have a name", inlineWith("region", "y"), inlineWith("credentialsSecretRef", obj{}), `spec.store.credentialsSecretRef.name: Required value`},

	// The permitted operations.
	{"the management policies", fields{"management": "Manage"}, fields{"management": "Own"}, `spec.management: Unsupported value: "Own": supported values: "Observe", "Manage"`},
	{"that a bucket of an inline store is only observed", fields{"management": "Manage"},
		fields{"management": "Manage", "storeRef": nil, "store": inline}, `spec.management: Invalid value: management Manage requires storeRef: a bucket of an inline store is only observed`},
	{"the deletion policies", fields{"deletionPolicy": "Delete"}, fields{"deletionPolicy": "Orphan"}, `spec.deletionPolicy: Unsupported value: "Orphan": supported values: "Retain", "Delete"`},
	{"that forceEmpty needs deletionPolicy Delete", fields{"forceEmpty": true, "deletionPolicy": "Delete"},
		fields{"forceEmpty": true, "deletionPolicy": "Retain"}, `spec.forceEmpty: Invalid value: forceEmpty requires deletionPolicy Delete`},

	// The probes.
	{"the probe methods", fields{"probe.method": "Head"}, fields{"probe.method": "Get"}, `spec.probe.method: Unsupported value: "Get": supported values: "Head", "Canary"`},
	{"that a canary needs management Manage", fields{"probe.method": "Canary", "management": "Manage"}, fields{"probe.method": "Canary"}, `spec.probe.method: Invalid value: method Canary requires management Manage: it writes to the bucket`},
	{"that a canary needs objects that can be deleted", fields{"probe.method": "Canary", "management": "Manage", "objectLock": map[string]any{}}, fields{"probe.method": "Canary", "management": "Manage", "objectLock": map[string]any{"defaultRetention": map[string]any{"mode": "Governance", "days": int64(1)}}}, `spec.probe.method: Invalid value: method Canary is not possible with objectLock.defaultRetention: its objects could not be deleted`},
	{"what a duration is", fields{"probe.interval": "1m30.5s"}, fields{"probe.interval": "1d"}, `spec.probe.interval: Invalid value: "1d": spec.probe.interval in body should match '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'`},
	{"the length of a duration", fields{"probe.interval": "0000000000000000000000000000060s"}, fields{"probe.interval": "000000000000000000000000000000060s"}, `spec.probe.interval: Too long: may not be more than 32 bytes`},
	{"what a duration can hold", fields{"probe.interval": "100h"}, fields{"probe.interval": "9999999999h"}, `spec.probe.interval: Invalid value: "string": type conversion error from 'string' to 'google.protobuf.Duration' evaluating rule: must be 1s to 168h`},
	{"the least interval", fields{"probe.interval": "1s"}, fields{"probe.interval": "999ms"}, `spec.probe.interval: Invalid value: "999ms": must be 1s to 168h`},
	{"the greatest interval", fields{"probe.interval": "168h"}, fields{"probe.interval": "168h1s"}, `spec.probe.interval: Invalid value: "168h1s": must be 1s to 168h`},
	{"the least timeout", fields{"probe.timeout": "100ms"}, fields{"probe.timeout": "99ms"}, `spec.probe.timeout: Invalid value: "99ms": must be 100ms to 1m`},
	{"the greatest timeout", fields{"probe.timeout": "1m", "probe.interval": "1m"}, fields{"probe.timeout": "61s", "probe.interval": "2m"}, `spec.probe.timeout: Invalid value: "61s": must be 100ms to 1m`},
	{"that a timeout is a duration", fields{"probe.timeout": "1s"}, fields{"probe.timeout": "-1s"}, `spec.probe.timeout: Invalid value: "-1s": spec.probe.timeout in body should match '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'`},
	{"that a probe ends before the next begins", fields{"probe.interval": "2s", "probe.timeout": "2s"},
		fields{"probe.interval": "2s", "probe.timeout": "3s"}, `spec.probe.timeout: Invalid value: timeout must not be longer than interval`},
	{"the least failure threshold", fields{"probe.failureThreshold": int64(1)}, fields{"probe.failureThreshold": int64(-1)}, `spec.probe.failureThreshold: Invalid value: -1: spec.probe.failureThreshold in body should be greater than or equal to 1`},
	{"the greatest failure threshold", fields{"probe.failureThreshold": int64(100)}, fields{"probe.failureThreshold": int64(101)}, `spec.probe.failureThreshold: Invalid value: 101: spec.probe.failureThreshold in body should be less than or equal to 100`},
	{"the least success threshold", fields{"probe.successThreshold": int64(1)}, fields{"probe.successThreshold": int64(-1)}, `spec.probe.successThreshold: Invalid value: -1: spec.probe.successThreshold in body should be greater than or equal to 1`},
	{"the greatest success threshold", fields{"probe.successThreshold": int64(100)}, fields{"probe.successThreshold": int64(101)}, `spec.probe.successThreshold: Invalid value: 101: spec.probe.successThreshold in body should be less than or equal to 100`},
	{"the least drift interval", fields{"driftInterval": "1m"}, fields{"driftInterval": "59s"}, `spec.driftInterval: Invalid value: "59s": must be 1m to 168h`},
	{"the greatest drift interval", fields{"driftInterval": "168h"}, fields{"driftInterval": "169h"}, `spec.driftInterval: Invalid value: "169h": must be 1m to 168h`},
	{"that a drift interval is a duration", fields{"driftInterval": "90m"}, fields{"driftInterval": "-2m"}, `spec.driftInterval: Invalid value: "-2m": spec.driftInterval in body should match '^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$'`},

	// The configuration.
	{"the versioning states", fields{"versioning": "Suspended"}, fields{"versioning": "Off"}, `spec.versioning: Unsupported value: "Off": supported values: "Enabled", "Suspended"`},
	{"how many tags there may be", fields{"tags": tags(44)}, fields{"tags": tags(45)}, `spec.tags: Too many: 45: must have at most 44 items`},
	{"the operator's own tags", fields{"tags": obj{"storage.example.com/uid": "x"}}, fields{"tags": obj{"storage.koboshi.dev/uid": "x"}}, `spec.tags: Invalid value: keys must have 1 to 128 characters and not begin with storage.koboshi.dev/ or aws:`},
	{"AWS's own tags", fields{"tags": obj{"aws": "x"}}, fields{"tags": obj{"aws:x": "x"}}, `spec.tags: Invalid value: keys must have 1 to 128 characters and not begin with storage.koboshi.dev/ or aws:`},
	{"that a tag has a key", fields{"tags": obj{"a": ""}}, fields{"tags": obj{"": "x"}}, `spec.tags: Invalid value: keys must have 1 to 128 characters and not begin with storage.koboshi.dev/ or aws:`},
	{"the length of a tag's key", fields{"tags": obj{long(128): "x"}}, fields{"tags": obj{long(129): "x"}}, `spec.tags: Invalid value: keys must have 1 to 128 characters and not begin with storage.koboshi.dev/ or aws:`},
	{"the length of a tag's value", fields{"tags": obj{"team": long(256)}}, fields{"tags": obj{"team": long(257)}}, `spec.tags.team: Too long: may not be more than 256 bytes`},
	{"how many lifecycle rules there may be",
		fields{"lifecycle": many(100, func(i int) any { return obj{"id": fmt.Sprint(i), "expirationDays": int64(1)} })},
		fields{"lifecycle": many(101, func(i int) any { return obj{"id": fmt.Sprint(i), "expirationDays": int64(1)} })}, `spec.lifecycle: Too many: 101: must have at most 100 items`},
	{"that a lifecycle rule's id is not empty", fields{"lifecycle": lifecycle(obj{"id": "x"})}, fields{"lifecycle": lifecycle(obj{"id": ""})}, `spec.lifecycle[0].id: Invalid value: "": spec.lifecycle[0].id in body should be at least 1 chars long`},
	{"that a lifecycle rule has an id", fields{"lifecycle": lifecycle(nil)}, fields{"lifecycle": lifecycle(obj{"id": nil})}, `spec.lifecycle[0].id: Required value`},
	{"the length of a lifecycle rule's id", fields{"lifecycle": lifecycle(obj{"id": long(255)})}, fields{"lifecycle": lifecycle(obj{"id": long(256)})}, `spec.lifecycle[0].id: Too long: may not be more than 255 bytes`},
	{"that lifecycle rules differ by id", fields{"lifecycle": append(lifecycle(nil), lifecycle(obj{"id": "new"})...)},
		fields{"lifecycle": append(lifecycle(nil), lifecycle(nil)...)}, `spec.lifecycle[1]: Duplicate value: {"id":"old"}`},
	{"the length of a lifecycle rule's prefix", fields{"lifecycle": lifecycle(obj{"prefix": long(1024)})},
		fields{"lifecycle": lifecycle(obj{"prefix": long(1025)})}, `spec.lifecycle[0].prefix: Too long: may not be more than 1024 bytes`},
	{"the least expirationDays", fields{"lifecycle": lifecycle(obj{"expirationDays": int64(1)})},
		fields{"lifecycle": lifecycle(obj{"expirationDays": int64(0)})}, `spec.lifecycle[0].expirationDays: Invalid value: 0: spec.lifecycle[0].expirationDays in body should be greater than or equal to 1`},
	{"the least noncurrentVersionExpirationDays", fields{"lifecycle": lifecycle(obj{"noncurrentVersionExpirationDays": int64(1)})},
		fields{"lifecycle": lifecycle(obj{"noncurrentVersionExpirationDays": int64(0)})}, `spec.lifecycle[0].noncurrentVersionExpirationDays: Invalid value: 0: spec.lifecycle[0].noncurrentVersionExpirationDays in body should be greater than or equal to 1`},
	{"the least abortIncompleteMultipartUploadDays", fields{"lifecycle": lifecycle(obj{"abortIncompleteMultipartUploadDays": int64(1)})},
		fields{"lifecycle": lifecycle(obj{"abortIncompleteMultipartUploadDays": int64(0)})}, `spec.lifecycle[0].abortIncompleteMultipartUploadDays: Invalid value: 0: spec.lifecycle[0].abortIncompleteMultipartUploadDays in body should be greater than or equal to 1`},
	{"that a lifecycle rule does something", fields{"lifecycle": lifecycle(obj{"expirationDays": nil, "expiredObjectDeleteMarker": true})},
		fields{"lifecycle": lifecycle(obj{"expirationDays": nil, "expiredObjectDeleteMarker": false})}, `spec.lifecycle[0]: Invalid value: must do something: set expirationDays, noncurrentVersionExpirationDays, abortIncompleteMultipartUploadDays or expiredObjectDeleteMarker`},
	{"that delete markers do not expire by age", fields{"lifecycle": lifecycle(obj{"disabled": true})},
		fields{"lifecycle": lifecycle(obj{"expiredObjectDeleteMarker": true})}, `spec.lifecycle[0]: Invalid value: expirationDays and expiredObjectDeleteMarker exclude each other`},
	{"that a policy is an object", fields{"policy": obj{"Statement": []any{}}}, fields{"policy": `{"Statement":[]}`}, `spec.policy: Invalid value: "string": spec.policy in body must be of type object: "string"`},
	{"how many CORS rules there may be", fields{"cors": many(100, func(int) any { return cors(nil)[0] })},
		fields{"cors": many(101, func(int) any { return cors(nil)[0] })}, `spec.cors: Too many: 101: must have at most 100 items`},
	{"that a CORS rule has an origin", fields{"cors": cors(obj{"allowedOrigins": []any{"*"}})}, fields{"cors": cors(obj{"allowedOrigins": []any{}})}, `spec.cors[0].allowedOrigins: Invalid value: 0: spec.cors[0].allowedOrigins in body should have at least 1 items`},
	{"that a CORS rule needs allowedOrigins", fields{"cors": cors(nil)}, fields{"cors": cors(obj{"allowedOrigins": nil})}, `spec.cors[0].allowedOrigins: Required value`},
	{"that a CORS rule needs allowedMethods", fields{"cors": cors(nil)}, fields{"cors": cors(obj{"allowedMethods": nil})}, `spec.cors[0].allowedMethods: Required value`},
	{"how many origins there may be", fields{"cors": cors(obj{"allowedOrigins": many(100, func(int) any { return "*" })})},
		fields{"cors": cors(obj{"allowedOrigins": many(101, func(int) any { return "*" })})}, `spec.cors[0].allowedOrigins: Too many: 101: must have at most 100 items`},
	{"the length of an origin", fields{"cors": cors(obj{"allowedOrigins": []any{long(1024)}})},
		fields{"cors": cors(obj{"allowedOrigins": []any{long(1025)}})}, `spec.cors[0].allowedOrigins[0]: Too long: may not be more than 1024 bytes`},
	{"that a CORS rule has a method", fields{"cors": cors(obj{"allowedMethods": []any{"PUT"}})}, fields{"cors": cors(obj{"allowedMethods": []any{}})}, `spec.cors[0].allowedMethods: Invalid value: 0: spec.cors[0].allowedMethods in body should have at least 1 items`},
	{"the methods of a CORS rule", fields{"cors": cors(obj{"allowedMethods": []any{"GET", "PUT", "POST", "DELETE", "HEAD"}})},
		fields{"cors": cors(obj{"allowedMethods": []any{"PATCH"}})}, `spec.cors[0].allowedMethods[0]: Unsupported value: "PATCH": supported values: "GET", "PUT", "POST", "DELETE", "HEAD"`},
	{"that a CORS rule has a method once", fields{"cors": cors(obj{"allowedMethods": []any{"GET", "HEAD"}})},
		fields{"cors": cors(obj{"allowedMethods": []any{"GET", "GET"}})}, `spec.cors[0].allowedMethods[1]: Duplicate value: "GET"`},
	{"how many headers a page may send", fields{"cors": cors(obj{"allowedHeaders": many(100, func(int) any { return "x" })})},
		fields{"cors": cors(obj{"allowedHeaders": many(101, func(int) any { return "x" })})}, `spec.cors[0].allowedHeaders: Too many: 101: must have at most 100 items`},
	{"the length of a header a page may send", fields{"cors": cors(obj{"allowedHeaders": []any{long(1024)}})},
		fields{"cors": cors(obj{"allowedHeaders": []any{long(1025)}})}, `spec.cors[0].allowedHeaders[0]: Too long: may not be more than 1024 bytes`},
	{"how many headers a page may read", fields{"cors": cors(obj{"exposeHeaders": many(100, func(int) any { return "x" })})},
		fields{"cors": cors(obj{"exposeHeaders": many(101, func(int) any { return "x" })})}, `spec.cors[0].exposeHeaders: Too many: 101: must have at most 100 items`},
	{"the length of a header a page may read", fields{"cors": cors(obj{"exposeHeaders": []any{long(1024)}})},
		fields{"cors": cors(obj{"exposeHeaders": []any{long(1025)}})}, `spec.cors[0].exposeHeaders[0]: Too long: may not be more than 1024 bytes`},
	{"the least maxAgeSeconds", fields{"cors": cors(obj{"maxAgeSeconds": int64(0)})}, fields{"cors": cors(obj{"maxAgeSeconds": int64(-1)})}, `spec.cors[0].maxAgeSeconds: Invalid value: -1: spec.cors[0].maxAgeSeconds in body should be greater than or equal to 0`},
	{"the encryption algorithms", fields{"encryption.algorithm": "AES256"}, fields{"encryption.algorithm": "DES"}, `spec.encryption.algorithm: Unsupported value: "DES": supported values: "AES256", "aws:kms"`},
	{"that encryption has an algorithm", fields{"encryption.algorithm": "aws:kms"}, fields{"encryption.bucketKey": true}, `spec.encryption.algorithm: Required value`},
	{"that a key needs aws:kms", fields{"encryption": obj{"algorithm": "aws:kms", "kmsKeyID": "k"}},
		fields{"encryption": obj{"algorithm": "AES256", "kmsKeyID": "k"}}, `spec.encryption.kmsKeyID: Invalid value: kmsKeyID requires algorithm aws:kms`},
	{"the length of a key's ID", fields{"encryption": obj{"algorithm": "aws:kms", "kmsKeyID": long(2048)}},
		fields{"encryption": obj{"algorithm": "aws:kms", "kmsKeyID": long(2049)}}, `spec.encryption.kmsKeyID: Too long: may not be more than 2048 bytes`},
	{"that object lock needs versioning", fields{"objectLock": obj{}, "versioning": "Enabled"},
		fields{"objectLock": obj{}, "versioning": "Suspended"}, `spec.versioning: Invalid value: objectLock requires versioning Enabled`},
	{"the modes of retention", fields{"objectLock.defaultRetention": obj{"mode": "Compliance", "days": int64(1)}},
		fields{"objectLock.defaultRetention": obj{"mode": "Lenient", "days": int64(1)}}, `spec.objectLock.defaultRetention.mode: Unsupported value: "Lenient": supported values: "Governance", "Compliance"`},
	{"that retention has a mode", fields{"objectLock.defaultRetention": obj{"mode": "Governance", "days": int64(1)}},
		fields{"objectLock.defaultRetention": obj{"days": int64(1)}}, `spec.objectLock.defaultRetention.mode: Required value`},
	{"that retention has a length", fields{"objectLock.defaultRetention": obj{"mode": "Governance", "years": int64(1)}},
		fields{"objectLock.defaultRetention": obj{"mode": "Governance"}}, `spec.objectLock.defaultRetention: Invalid value: exactly one of days and years is required`},
	{"that retention has one length", fields{"objectLock.defaultRetention": obj{"mode": "Governance", "years": int64(2)}},
		fields{"objectLock.defaultRetention": obj{"mode": "Governance", "years": int64(1), "days": int64(1)}}, `spec.objectLock.defaultRetention: Invalid value: exactly one of days and years is required`},
	{"the least days", fields{"objectLock.defaultRetention": obj{"mode": "Governance", "days": int64(1)}},
		fields{"objectLock.defaultRetention": obj{"mode": "Governance", "days": int64(0)}}, `spec.objectLock.defaultRetention.days: Invalid value: 0: spec.objectLock.defaultRetention.days in body should be greater than or equal to 1`},
	{"the greatest days", fields{"objectLock.defaultRetention": obj{"mode": "Governance", "days": int64(36500)}},
		fields{"objectLock.defaultRetention": obj{"mode": "Governance", "days": int64(36501)}}, `spec.objectLock.defaultRetention.days: Invalid value: 36501: spec.objectLock.defaultRetention.days in body should be less than or equal to 36500`},
	{"the least years", fields{"objectLock.defaultRetention": obj{"mode": "Governance", "years": int64(1)}},
		fields{"objectLock.defaultRetention": obj{"mode": "Governance", "years": int64(0)}}, `spec.objectLock.defaultRetention.years: Invalid value: 0: spec.objectLock.defaultRetention.years in body should be greater than or equal to 1`},
	{"the greatest years", fields{"objectLock.defaultRetention": obj{"mode": "Governance", "years": int64(100)}},
		fields{"objectLock.defaultRetention": obj{"mode": "Governance", "years": int64(101)}}, `spec.objectLock.defaultRetention.years: Invalid value: 101: spec.objectLock.defaultRetention.years in body should be less than or equal to 100`},
}

var _ = Describe("The schema of a v1 StorageBucket", Ordered, ContinueOnFailure, func() {
	holds(bucketV1, inStore, bucketRules)
})
