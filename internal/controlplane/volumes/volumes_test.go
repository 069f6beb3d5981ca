package volumes

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-helpers/storage/volume"
)

func TestADefaultStorageClassIsCreatedOnlyIfThereIsNone(t *testing.T) {
	t.Parallel()
	plain := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "plain"}, Provisioner: "example.com/plain"}
	other := &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: "other", Annotations: map[string]string{defaultAnnotation: "true"}},
		Provisioner: "example.com/other",
	}
	changed := newClass()
	changed.Annotations[defaultAnnotation] = "false"
	for name, test := range map[string]struct {
		has     []runtime.Object
		created bool
	}{
		"no class":                       {nil, true},
		"a class that is not default":    {[]runtime.Object{plain}, true},
		"another default class":          {[]runtime.Object{plain, other}, false},
		"our class":                      {[]runtime.Object{newClass()}, false},
		"our class, default no longer":   {[]runtime.Object{changed}, false},
		"our class, and another default": {[]runtime.Object{changed, other}, false},
	} {
		client := fake.NewClientset(test.has...)
		if err := EnsureClass(t.Context(), client); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var created bool
		list, err := client.StorageV1().StorageClasses().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		created = len(list.Items) > len(test.has)
		if created != test.created {
			t.Errorf("%s: a class was created: %t, want %t", name, created, test.created)
		}
	}
}

func TestAClaimGetsAVolumeWhenTheBinderAsksForOne(t *testing.T) {
	t.Parallel()
	late := newClass()
	wait, retain := storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimRetain
	late.Name, late.VolumeBindingMode, late.ReclaimPolicy, late.MountOptions = "late", &wait, &retain, []string{"ro"}
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		want   bool
	}{
		"the binder asks":              {nil, true},
		"another class is named":       {func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("foreign") }, false},
		"another provisioner is asked": {func(c *corev1.PersistentVolumeClaim) { c.Annotations[volume.AnnStorageProvisioner] = "example.com/x" }, false},
		"the claim is bound":           {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "manual" }, false},
		"the claim is being deleted":   {func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, false},
		"the class is missing":         {func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("missing") }, false},
		"no node is chosen yet":        {func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &late.Name }, false},
		"a node is chosen": {func(c *corev1.PersistentVolumeClaim) {
			c.Spec.StorageClassName, c.Annotations[volume.AnnSelectedNode] = &late.Name, "node-1"
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			claim := newClaim()
			if test.change != nil {
				test.change(claim)
			}
			foreign := newClass()
			foreign.Name, foreign.Provisioner = "foreign", "example.com/x"
			client := fake.NewClientset(newClass(), late, foreign, claim)
			err := syncOnce(t, Config{Client: client}, item{"ns", "data"})
			if err != nil {
				t.Fatal(err)
			}
			got, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-claim-uid", metav1.GetOptions{})
			if err == nil != test.want || err != nil && !apierrors.IsNotFound(err) {
				t.Fatalf("%+v (%v), want a volume: %t", got, err, test.want)
			}
			if err == nil && *claim.Spec.StorageClassName == late.Name {
				if s := got.Spec; s.PersistentVolumeReclaimPolicy != retain || !cmp.Equal(s.MountOptions, late.MountOptions) {
					t.Errorf("the volume does not have the reclaim policy and the mount options of its class: %+v", s)
				}
			}
		})
	}
}

func TestAClaimThatTheBinderHasNotHandledIsAskedForUnlessAVolumeIsAvailable(t *testing.T) {
	t.Parallel()
	available := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "manual"}, Spec: corev1.PersistentVolumeSpec{StorageClassName: DefaultClass}}
	bound := available.DeepCopy()
	bound.Name, bound.Spec.ClaimRef = "bound", &corev1.ObjectReference{Name: "other"}
	for name, test := range map[string]struct {
		volumes []runtime.Object
		want    string
	}{
		"no volume":          {nil, Provisioner},
		"a volume in use":    {[]runtime.Object{bound}, Provisioner},
		"a volume to choose": {[]runtime.Object{bound, available}, ""},
	} {
		claim := newClaim()
		claim.Annotations = nil
		client := fake.NewClientset(append(test.volumes, newClass(), claim)...)
		if err := syncOnce(t, Config{Client: client}, item{"ns", "data"}); err != nil {
			t.Fatal(err)
		}
		got, err := client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "data", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if a := got.Annotations; a[volume.AnnStorageProvisioner] != test.want || a[volume.AnnBetaStorageProvisioner] != test.want {
			t.Errorf("%s: annotations %v, want the provisioner %q", name, a, test.want)
		}
	}
}

func TestAVolumeMatchesItsClaim(t *testing.T) {
	t.Parallel()
	claim := newClaim()
	client := fake.NewClientset(newClass(), claim)
	for range 2 { // a second attempt finds the volume of the first
		if err := syncOnce(t, Config{Client: client, Root: "/root-of-volumes"}, item{"ns", "data"}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-claim-uid", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	create := corev1.HostPathDirectoryOrCreate
	want := corev1.PersistentVolumeSpec{
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
		AccessModes:                   claim.Spec.AccessModes,
		StorageClassName:              DefaultClass,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		ClaimRef:                      &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "ns", Name: "data", UID: "claim-uid"},
		PersistentVolumeSource: corev1.PersistentVolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/root-of-volumes/pvc-claim-uid", Type: &create},
		},
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.Annotations[volume.AnnDynamicallyProvisioned] != Provisioner {
		t.Errorf("annotations: %v", got.Annotations)
	}
}

func TestAReleasedVolumeIsDeletedWithItsContentByItsPolicy(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolume)
		gone   bool
	}{
		"released":    {nil, true},
		"still bound": {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }, false},
		"to be retained": {func(v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}, false},
		"of another provisioner": {func(v *corev1.PersistentVolume) { v.Annotations[volume.AnnDynamicallyProvisioned] = "example.com/x" }, false},
		"created by a person":    {func(v *corev1.PersistentVolume) { v.Annotations = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := &corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: "pvc-x", UID: "volume-uid", Annotations: map[string]string{volume.AnnDynamicallyProvisioned: Provisioner}},
				Spec:       corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete},
				Status:     corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased},
			}
			if test.change != nil {
				test.change(v)
			}
			root := t.TempDir()
			content := filepath.Join(root, "pvc-x")
			if err := os.MkdirAll(filepath.Join(content, "lost+found"), 0o700); err != nil {
				t.Fatal(err)
			}
			client := fake.NewClientset(v)
			if err := syncOnce(t, Config{Client: client, Root: root}, item{"", "pvc-x"}); err != nil {
				t.Fatal(err)
			}
			_, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-x", metav1.GetOptions{})
			if apierrors.IsNotFound(err) != test.gone {
				t.Errorf("reading the volume: %v, want it to be gone: %t", err, test.gone)
			}
			if _, err := os.Stat(content); os.IsNotExist(err) != test.gone {
				t.Errorf("reading its content: %v, want it to be gone: %t", err, test.gone)
			}
		})
	}
}

func TestAVolumeFollowsItsClaimWhileTheProvisionerRuns(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(newClass())
	ctx, cancel := context.WithCancel(t.Context())
	p, factory := newProvisioner(Config{Client: client})
	factory.StartWithContext(ctx)
	ended := make(chan struct{})
	go func() { p.run(ctx); close(ended) }()
	defer func() { cancel(); <-ended; factory.Shutdown() }()
	claim := newClaim()
	claim.Annotations = nil
	if _, err := client.CoreV1().PersistentVolumeClaims("ns").Create(ctx, claim, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	v := eventualVolume(t, client, func(v *corev1.PersistentVolume) bool { return v != nil })
	v = v.DeepCopy()
	v.Status.Phase = corev1.VolumeReleased // as the binder does it
	if _, err := client.CoreV1().PersistentVolumes().UpdateStatus(ctx, v, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventualVolume(t, client, func(v *corev1.PersistentVolume) bool { return v == nil })
}

// eventualVolume waits until wanted accepts the volume, which is nil if it does not exist.
func eventualVolume(t *testing.T, client kubernetes.Interface, wanted func(*corev1.PersistentVolume) bool) *corev1.PersistentVolume {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(5 * time.Minute)
	for {
		v, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-claim-uid", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			v, err = nil, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		if wanted(v) {
			return v
		}
		select {
		case <-ticker.C:
		case <-deadline:
			t.Fatalf("the volume is still %+v", v)
		}
	}
}

// syncOnce handles one item with caches that have everything the client has.
func syncOnce(t *testing.T, c Config, i item) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	p, factory := newProvisioner(c)
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.WaitForCacheSync(ctx.Done())
	if i.namespace == "" {
		return p.reclaim(ctx, i)
	}
	return p.provision(ctx, i)
}

// newClaim returns a claim for which the binder has asked this provisioner.
func newClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "data", UID: "claim-uid",
			Annotations: map[string]string{volume.AnnStorageProvisioner: Provisioner},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(DefaultClass),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}},
		},
	}
}
