package x6

import "k8s.io/apimachinery/pkg/runtime/schema"

// served is the version that the controller uses.
//
// RIGHT: Kubernetes serves it since 1.21.
var served = schema.GroupVersion{Group: "policy", Version: "v1"}
