package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestABucketWithOneTagOfOursHasAnOwner(t *testing.T) {
	for _, tc := range []struct {
		name string
		tags map[string]string
		none bool
		ours bool
	}{
		{"no tags", nil, true, false},
		{"others' tags", map[string]string{"team": "a"}, true, false},
		{"all three", map[string]string{tagCluster: "c", tagUID: "u", tagOrigin: originCreated}, false, true},
		{"another cluster", map[string]string{tagCluster: "d", tagUID: "u", tagOrigin: originCreated}, false, false},
		{"another object", map[string]string{tagCluster: "c", tagUID: "v", tagOrigin: originCreated}, false, false},
		{"only the UID", map[string]string{tagUID: "u"}, false, false},
		{"a tag of ours that is not known yet", map[string]string{"storage.koboshi.dev/new": "x"}, false, false},
	} {
		if got := none(tc.tags); got != tc.none {
			t.Errorf("%s: without owner %v", tc.name, got)
		}
		if got := ownerOf(tc.tags).isOf("c", "u"); got != tc.ours {
			t.Errorf("%s: ours %v", tc.name, got)
		}
	}
}

func TestNoClusterAndNoUIDOwnNothing(t *testing.T) {
	if ownerOf(nil).isOf("", "") {
		t.Error("a bucket without tags is owned by an object without a UID")
	}
}

func TestTaggingKeepsWhatOthersTagged(t *testing.T) {
	before := map[string]string{"team": "a"}
	got := owner{"c", "u", originAdopted}.tagged(before)
	want := map[string]string{"team": "a", tagCluster: "c", tagUID: "u", tagOrigin: originAdopted}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(before) != 1 {
		t.Error("the tags that were read were changed")
	}
}
