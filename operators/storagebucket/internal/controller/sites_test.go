package controller

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

// declaredStores is a client.Reader of ObjectStores.
type declaredStores []storagev1.ObjectStore

func (d declaredStores) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, store := range d {
		if client.ObjectKeyFromObject(&store) == key {
			store.DeepCopyInto(into.(*storagev1.ObjectStore))
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "objectstores"}, key.Name)
}

func (declaredStores) List(context.Context, client.ObjectList, ...client.ListOption) error {
	panic("a bucket's store is never listed")
}

func TestABucketCannotTellAStoreThatItMayNotUseFromOneThatDoesNotExist(t *testing.T) {
	present := storagev1.ObjectStore{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "present"}}
	present.Spec.AllowedNamespaces = []string{"friend"}
	s := &sites{reader: declaredStores{present}}
	problem := func(namespace, name string) finding {
		t.Helper()
		b := &storagev1.StorageBucket{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a"}}
		b.Spec.StoreRef = &storagev1.ObjectStoreReference{Namespace: namespace, Name: name}
		where, err := s.of(t.Context(), b)
		if err != nil || where.problem == nil {
			t.Fatalf("%s/%s: problem %v, error %v", namespace, name, where.problem, err)
		}
		return *where.problem
	}
	exists, absent := problem("other", "present"), problem("other", "absent")
	exists.message = strings.ReplaceAll(exists.message, "present", "absent")
	if exists != absent {
		t.Errorf("a store that may not be used: %v\none that does not exist:         %v", exists, absent)
	}
	if own := problem("", "absent"); own.reason != reasonStoreNotFound {
		t.Errorf("in the bucket's own namespace the reason is %s", own.reason)
	}
}
