package controller

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// These tags identify the owner of a bucket. If the store accepts tags in the request that
// creates a bucket, the bucket has them from the start; otherwise they are written before
// anything else.
const (
	tagCluster = "storage.koboshi.dev/cluster"
	tagUID     = "storage.koboshi.dev/uid"
	tagOrigin  = "storage.koboshi.dev/origin"

	ownTagPrefix = "storage.koboshi.dev/"

	originCreated = "created"
	originAdopted = "adopted"
)

// owner is the owner of a bucket according to its tags; the zero value means none.
type owner struct {
	cluster string
	uid     types.UID
	origin  string
}

func ownerOf(tags map[string]string) owner {
	return owner{cluster: tags[tagCluster], uid: types.UID(tags[tagUID]), origin: tags[tagOrigin]}
}

// String returns the owner in the form that a person uses in the annotation adopt-from.
func (o owner) String() string { return o.cluster + "/" + string(o.uid) }

// tagged returns the tags with the owner's tags added. Tags of other programs are kept.
func (o owner) tagged(tags map[string]string) map[string]string {
	all := maps.Clone(tags)
	if all == nil {
		all = map[string]string{}
	}
	all[tagCluster], all[tagUID], all[tagOrigin] = o.cluster, string(o.uid), o.origin
	return all
}

// none reports whether a bucket has no owner. A bucket with any tag of the operator has
// an owner, even if the tags do not identify it.
func none(tags map[string]string) bool {
	for key := range tags {
		if strings.HasPrefix(key, ownTagPrefix) {
			return false
		}
	}
	return true
}

// isOf reports whether the bucket belongs to this object.
func (o owner) isOf(cluster string, uid types.UID) bool {
	return o.cluster == cluster && o.uid == uid && uid != "" && cluster != ""
}

// state returns the origin of the bucket as a value for status.external.state.
func (o owner) state() storagev1.ExternalState {
	if o.origin == originCreated {
		return storagev1.ExternalCreated
	}
	return storagev1.ExternalAdopted
}
