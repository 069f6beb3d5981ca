package x6

import "k8s.io/apimachinery/pkg/runtime/schema"

// removed is the version that the controller uses.
//
// WRONG: Kubernetes has not served it since 1.25, so the budget is never created. The bug is taken from
// cscetbon/casskop#99.
var removed = schema.GroupVersion{Group: "policy", Version: "v1beta1"}
