package inspect

import "k8s.io/apimachinery/pkg/runtime/schema"

func schemaKind(kind string) schema.GroupKind {
	return schema.GroupKind{Group: resources[kind].Group, Kind: kind}
}
