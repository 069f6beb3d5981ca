package request

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

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

func hasLeader(object map[string]any) bool { return leaderRecord(object) != nil }

func leaderRecord(object map[string]any) any {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations[LeaderAnnotation]
}

// LeaseSpec returns what an object states about the holder of an election, with the field
// names of a Lease's spec. It reports false if the object is neither a Lease nor the record
// of an election.
func LeaseSpec(kind schema.GroupKind, object map[string]any) (spec map[string]any, ok bool) {
	if IsLeaseKind(kind) {
		spec, _ = object["spec"].(map[string]any)
		return spec, true
	}
	if kind.Group != "" || kind.Kind != "ConfigMap" && kind.Kind != "Endpoints" {
		return nil, false
	}
	text, ok := leaderRecord(object).(string)
	if !ok {
		return nil, false
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if decoder.Decode(&spec) != nil {
		return nil, true // a record that names no holder
	}
	if seconds, isNumber := spec["leaseDurationSeconds"].(json.Number); isNumber {
		if n, err := seconds.Int64(); err == nil {
			spec["leaseDurationSeconds"] = n
		}
	}
	return spec, true
}
