package usage

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	aggregatoropenapi "k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"

	usagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/usage/v1"
)

// openAPIDefinitions returns the schema that kubectl explain reads. The schemas of the two
// types of this API are written by hand. The descriptions in these schemas repeat the
// comments of the types, and a test ensures that comments and descriptions stay the same.
// The schemas of apimachinery's types come from the aggregator, the smallest library that
// has them.
func openAPIDefinitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	definitions := aggregatoropenapi.GetOpenAPIDefinitions(ref)
	maps.DeleteFunc(definitions, func(name string, _ common.OpenAPIDefinition) bool {
		return !strings.HasPrefix(name, "io.k8s.apimachinery.")
	})
	usage, list := usagev1.BucketUsage{}.OpenAPIModelName(), usagev1.BucketUsageList{}.OpenAPIModelName()
	definitions[usage] = bucketUsageDefinition(ref)
	definitions[list] = bucketUsageListDefinition(ref)
	return definitions
}

func bucketUsageDefinition(ref common.ReferenceCallback) common.OpenAPIDefinition {
	return object(
		"BucketUsage reports the number and total size of the objects in the bucket that the StorageBucket of the same name and namespace declares. The objects are counted during the request, unless they were counted in the last few minutes: see measuredAt. BucketUsages cannot be watched or written.",
		map[string]spec.Schema{
			"metadata":   reference(ref(metav1.ObjectMeta{}.OpenAPIModelName()), "metadata has the name, the namespace and the labels of the StorageBucket."),
			"bucketName": plain("string", "", "bucketName is the name of the bucket in the store."),
			"store":      plain("string", "", `store is the ObjectStore the bucket is in, as namespace/name, or "inline" when the StorageBucket has an inline store.`),
			"objects":    plain("integer", "int64", "objects is the number of objects in the bucket, not counting old versions. This field is absent if the objects could not be counted; see reason."),
			"bytes":      plain("integer", "int64", "bytes is the total size of the objects, not counting old versions. This field is absent if the field objects is absent."),
			"truncated":  plain("boolean", "", "truncated means that counting stopped at the server's limit of objects: the bucket holds at least as many objects and bytes as reported."),
			"measuredAt": reference(ref(metav1.Time{}.OpenAPIModelName()), "measuredAt is the time at which counting ended, whether it succeeded or not."),
			"reason":     plain("string", "", "reason is the cause of a failed count, in one word; it is absent if the objects were counted."),
			"message":    plain("string", "", "message explains the reason and what to do about it."),
		},
		[]string{"bucketName", "store", "measuredAt"},
		metav1.ObjectMeta{}.OpenAPIModelName(), metav1.Time{}.OpenAPIModelName(),
	)
}

func bucketUsageListDefinition(ref common.ReferenceCallback) common.OpenAPIDefinition {
	item := spec.Schema{SchemaProps: spec.SchemaProps{
		Default: map[string]any{},
		Ref:     ref(usagev1.BucketUsage{}.OpenAPIModelName()),
	}}
	items := plain("array", "", "items are the BucketUsages.")
	items.Items = &spec.SchemaOrArray{Schema: &item}
	return object(
		"BucketUsageList is a list of BucketUsages. The list includes the buckets that could not be measured, with the reason.",
		map[string]spec.Schema{
			"metadata": reference(ref(metav1.ListMeta{}.OpenAPIModelName()), "metadata has the token for the next page if the list was requested in pages."),
			"items":    items,
		},
		[]string{"items"},
		usagev1.BucketUsage{}.OpenAPIModelName(), metav1.ListMeta{}.OpenAPIModelName(),
	)
}

// object returns the schema of a kind: its own properties, and the properties that
// every kind has.
func object(description string, properties map[string]spec.Schema, required []string, dependencies ...string) common.OpenAPIDefinition {
	properties["apiVersion"] = plain("string", "", "apiVersion is the group and version of the schema of this object.")
	properties["kind"] = plain("string", "", "kind is the kind of this object.")
	return common.OpenAPIDefinition{
		Schema: spec.Schema{SchemaProps: spec.SchemaProps{
			Description: description,
			Type:        []string{"object"},
			Properties:  properties,
			Required:    required,
		}},
		Dependencies: dependencies,
	}
}

func plain(kind, format, description string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{kind}, Format: format, Description: description}}
}

func reference(to spec.Ref, description string) spec.Schema {
	return spec.Schema{SchemaProps: spec.SchemaProps{Ref: to, Description: description, Default: map[string]any{}}}
}
