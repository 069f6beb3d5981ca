package request

import "k8s.io/apimachinery/pkg/runtime/schema"

// IsBookkeepingObject reports whether an object belongs to the machinery around
// controllers, such as an Event or a Lease. A check ignores changes to bookkeeping objects
// when it waits until the cluster is idle, and when it compares two states.
func IsBookkeepingObject(kind schema.GroupKind, object map[string]any) bool {
	switch kind {
	case schema.GroupKind{Kind: "Event"}, schema.GroupKind{Group: "events.k8s.io", Kind: "Event"},
		schema.GroupKind{Group: coordination, Kind: "Lease"}, schema.GroupKind{Group: coordination, Kind: "LeaseCandidate"},
		schema.GroupKind{Kind: "Node"}:
		return true
	case schema.GroupKind{Kind: "ConfigMap"}, schema.GroupKind{Kind: "Endpoints"}:
		return hasLeader(object)
	}
	return false
}

// IsLeaseKind reports whether objects of the kind are Leases.
func IsLeaseKind(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Group: coordination, Kind: "Lease"}
}

// IsDerived reports whether upstream controllers compute objects of the kind
// from Services and Pods, often after everything else has settled.
func IsDerived(kind schema.GroupKind) bool {
	return kind == schema.GroupKind{Kind: "Endpoints"} || kind == schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}
}

func hasLeader(object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations[LeaderAnnotation] != nil
}
