package controller

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// Tags that say whose a bucket is. They are in the bucket from its first moment
// where the store takes tags with the request that makes it, and are written
// before anything else where it does not.
const (
	tagCluster = "storage.koboshi.dev/cluster"
	tagUID     = "storage.koboshi.dev/uid"
	tagOrigin  = "storage.koboshi.dev/origin"

	ownTagPrefix = "storage.koboshi.dev/"

	originCreated = "created"
	originAdopted = "adopted"
)

// owner is what a bucket's tags say of its owner; the zero value means that it
// has none.
type owner struct {
	cluster string
	uid     types.UID
	origin  string
}

func ownerOf(tags map[string]string) owner {
	return owner{cluster: tags[tagCluster], uid: types.UID(tags[tagUID]), origin: tags[tagOrigin]}
}

// tagged returns the tags with the owner's among them. What others had put
// there stays.
func (o owner) tagged(tags map[string]string) map[string]string {
	all := maps.Clone(tags)
	if all == nil {
		all = map[string]string{}
	}
	all[tagCluster], all[tagUID], all[tagOrigin] = o.cluster, string(o.uid), o.origin
	return all
}

// none tells a bucket without an owner. One tag of ours alone is an owner we
// do not know, not none.
func none(tags map[string]string) bool {
	for key := range tags {
		if strings.HasPrefix(key, ownTagPrefix) {
			return false
		}
	}
	return true
}

// isOf tells whether the bucket is this object's.
func (o owner) isOf(cluster string, uid types.UID) bool {
	return o.cluster == cluster && o.uid == uid && uid != "" && cluster != ""
}

// state is what the origin means for status.external.
func (o owner) state() storagev1.ExternalState {
	if o.origin == originCreated {
		return storagev1.ExternalCreated
	}
	return storagev1.ExternalAdopted
}
