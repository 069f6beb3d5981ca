package child

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func configMap(name string, uid types.UID) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: uid}}
}

// keeper returns a Keeper whose cache and server hold different objects.
func keeper(cached, live []client.Object) (k Keeper, server client.Client) {
	build := func(objects []client.Object) client.Client {
		return fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
	}
	server = build(live)
	return Keeper{Client: lagging{server, build(cached)}, Live: server}, server
}

// lagging writes to the server but reads from a cache.
type lagging struct {
	client.Client
	client.Reader
}

func (l lagging) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return l.Reader.Get(ctx, key, obj, opts...)
}

func (l lagging) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return l.Reader.List(ctx, list, opts...)
}

func TestNoChildIsCreatedForAnOwnerThatIsGone(t *testing.T) {
	owner := configMap("owner", "1")
	k, server := keeper([]client.Object{owner.DeepCopy()}, nil)
	there, err := k.Ensure(t.Context(), owner, configMap("child", ""), func() {})
	if there || err != nil {
		t.Errorf("Ensure returned %v, %v; want false and no error", there, err)
	}
	if err := server.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "child"}, &corev1.ConfigMap{}); err == nil {
		t.Error("the child was created")
	}
}

func TestAChildThatTheCacheLacksIsRepairedInsteadOfCreated(t *testing.T) {
	owner := configMap("owner", "1")
	k, server := keeper(nil, []client.Object{owner.DeepCopy(), configMap("child", "2")})
	child := configMap("child", "")
	there, err := k.Ensure(t.Context(), owner, child, func() { child.Data = map[string]string{"a": "b"} })
	if !there || err != nil {
		t.Errorf("Ensure returned %v, %v; want true and no error", there, err)
	}
	var got corev1.ConfigMap
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(child), &got); err != nil || got.UID != "2" || got.Data["a"] != "b" {
		t.Errorf("the child is %v, %v", &got, err)
	}
}

func TestRemoveDeletesTheOwnersChildAndNoOther(t *testing.T) {
	owner, other := configMap("owner", "1"), configMap("owner", "0")
	child := configMap("child", "2")
	k, server := keeper(nil, nil)
	k.Own(owner, child)
	if err := server.Create(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		owner *corev1.ConfigMap
		left  bool
	}{{other, true}, {owner, false}} {
		gone, err := k.Remove(t.Context(), configMap("child", ""), OwnedBy(test.owner))
		if !gone || err != nil {
			t.Errorf("Remove for the owner with UID %s returned %v, %v; want true and no error", test.owner.UID, gone, err)
		}
		err = server.Get(t.Context(), client.ObjectKeyFromObject(child), &corev1.ConfigMap{})
		if left := err == nil; left != test.left {
			t.Errorf("after Remove for the owner with UID %s the child exists: %v, want %v", test.owner.UID, left, test.left)
		}
	}
}

func TestAChildHeldByAFinalizerIsNotGone(t *testing.T) {
	held := configMap("child", "2")
	held.Finalizers = []string{"example.com/held"}
	k, _ := keeper(nil, []client.Object{held})
	for range 2 {
		gone, err := k.Remove(t.Context(), configMap("child", ""), func(client.Object) bool { return true })
		if gone || err != nil {
			t.Errorf("Remove returned %v, %v; want false and no error", gone, err)
		}
	}
}
