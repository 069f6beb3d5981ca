// Package volumes provisions the PersistentVolumes of a plane.
//
// Provisioning has the same stages as with any external provisioner, and all stages but
// two are upstream's. A claim without a class gets the default StorageClass at admission;
// upstream's binder then names this package's provisioner in an annotation of the claim; see
// ask. The provisioner creates the volume, and the binder binds it. When the claim is gone, the
// binder marks the volume as Released, and the provisioner deletes the volume if its
// reclaim policy is Delete.
//
// Upstream also has a provisioner of its own for hostPath volumes. Upstream's provisioner is not
// used, because it creates folders in /tmp of this machine, even for Pods that are only simulated.
package volumes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
)

const (
	// Name is the name of the provisioner as a component: in logs and metrics.
	Name = "volume-provisioner"
	// User is the user name of the provisioner at the API server.
	User = "koboshi:volumes"
	// Provisioner is the name by which a StorageClass selects this package as its provisioner.
	Provisioner = "koboshi.dev/simulated"
	// DefaultClass is the StorageClass that EnsureClass creates.
	DefaultClass = "standard"

	// defaultAnnotation marks the StorageClass that is assigned to claims without a class.
	defaultAnnotation = "storageclass.kubernetes.io/is-default-class"
	// simulatedRoot is the folder that volumes name if no program can mount them. No code reads or
	// creates this folder.
	simulatedRoot = "/var/lib/koboshi/volumes"
	workers       = 2
)

// EnsureClass creates the default StorageClass, unless a class is already the default.
func EnsureClass(ctx context.Context, client kubernetes.Interface) error {
	classes := client.StorageV1().StorageClasses()
	list, err := classes.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing storage classes: %w", err)
	}
	for _, class := range list.Items {
		if class.Annotations[defaultAnnotation] == "true" {
			return nil
		}
	}
	_, err = classes.Create(ctx, newClass(), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating storage class %s: %w", DefaultClass, err)
	}
	return nil
}

// newClass returns the default StorageClass. The class binds immediately: with
// WaitForFirstConsumer, the scheduler checks only once a second whether a claim is bound, so each
// Pod with a claim would take a second, during which the plane looks idle.
func newClass() *storagev1.StorageClass {
	reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        DefaultClass,
			Annotations: map[string]string{defaultAnnotation: "true"},
		},
		Provisioner:       Provisioner,
		ReclaimPolicy:     &reclaim,
		VolumeBindingMode: &binding,
	}
}

// Config configures the provisioner.
type Config struct {
	Client kubernetes.Interface
	// Root is the folder that holds the content of the volumes, for Pods that run on this
	// machine. Empty means that all Pods are simulated, and that no folder is used.
	Root string
}

// Run provisions and deletes volumes until ctx ends.
func Run(ctx context.Context, c Config) error {
	name, err := cache.NewInformerName(Name)
	if err != nil {
		return fmt.Errorf("a %s already runs in this process: %w", Name, err)
	}
	p, factory := newProvisioner(c, informers.WithInformerName(name))
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	p.run(ctx)
	return nil
}

// An item is a claim or a volume that the provisioner handles. The namespace of a volume
// is empty.
type item struct{ namespace, name string }

type provisioner struct {
	Config
	claims  corelisters.PersistentVolumeClaimLister
	volumes corelisters.PersistentVolumeLister
	classes storagelisters.StorageClassLister
	queue   workqueue.TypedRateLimitingInterface[item]
	synced  []cache.InformerSynced
}

// newProvisioner returns a provisioner, and the informers that it needs.
func newProvisioner(c Config, options ...informers.SharedInformerOption) (*provisioner, informers.SharedInformerFactory) {
	factory := informers.NewSharedInformerFactoryWithOptions(c.Client, 0, options...)
	claims, volumes := factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().PersistentVolumes()
	classes := factory.Storage().V1().StorageClasses()
	p := &provisioner{
		Config: c, claims: claims.Lister(), volumes: volumes.Lister(), classes: classes.Lister(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(workqueue.DefaultTypedControllerRateLimiter[item](),
			workqueue.TypedRateLimitingQueueConfig[item]{Name: Name}),
		synced: []cache.InformerSynced{classes.Informer().HasSynced},
	}
	for _, informer := range []cache.SharedIndexInformer{claims.Informer(), volumes.Informer()} {
		// AddEventHandler fails only after the informer has stopped.
		registration, _ := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    p.enqueue,
			UpdateFunc: func(_, now any) { p.enqueue(now) },
		})
		p.synced = append(p.synced, registration.HasSynced)
	}
	return p, factory
}

func (p *provisioner) enqueue(object any) {
	if o, ok := object.(metav1.Object); ok {
		p.queue.Add(item{o.GetNamespace(), o.GetName()})
	}
}

func (p *provisioner) run(ctx context.Context) {
	if !cache.WaitForCacheSync(ctx.Done(), p.synced...) {
		return
	}
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for p.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	p.queue.ShutDown()
	running.Wait()
}

// next handles one item, and returns false when the queue has shut down.
func (p *provisioner) next(ctx context.Context) bool {
	i, down := p.queue.Get()
	if down {
		return false
	}
	defer p.queue.Done(i)
	handle := p.provision
	if i.namespace == "" {
		handle = p.reclaim
	}
	if err := handle(ctx, i); err != nil {
		klog.FromContext(ctx).Error(err, "Trying again", "namespace", i.namespace, "name", i.name)
		p.queue.AddRateLimited(i)
		return true
	}
	p.queue.Forget(i)
	return true
}

// provision creates the volume of a claim that waits for this provisioner.
func (p *provisioner) provision(ctx context.Context, i item) error {
	claim, err := p.claims.PersistentVolumeClaims(i.namespace).Get(i.name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || !unbound(claim) {
		return err
	}
	class, err := p.classes.Get(volume.GetPersistentVolumeClaimClass(claim))
	if apierrors.IsNotFound(err) {
		return nil // the binder waits for the class as well
	}
	if err != nil || class.Provisioner != Provisioner || !chosen(claim, class) {
		return err
	}
	if claim.Annotations[volume.AnnStorageProvisioner] == "" {
		return p.ask(ctx, claim)
	}
	_, err = p.Client.CoreV1().PersistentVolumes().Create(ctx, p.newVolume(claim, class), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the volume of claim %s/%s: %w", i.namespace, i.name, err)
	}
	return nil
}

// unbound reports whether the claim waits for a volume that this provisioner may create.
func unbound(claim *corev1.PersistentVolumeClaim) bool {
	asked := claim.Annotations[volume.AnnStorageProvisioner]
	return claim.DeletionTimestamp == nil && claim.Spec.VolumeName == "" && (asked == "" || asked == Provisioner)
}

// ask writes the annotations with which the binder asks this provisioner for a volume. The binder's
// own attempt fails if the claim has changed since the binder read it, for example because the
// StatefulSet controller has added an owner. The binder may wait up to 15 s before it tries again,
// and until then the plane would look idle. If an available volume of the class exists, ask leaves
// the decision to the binder, which may bind that volume.
func (p *provisioner) ask(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	volumes, err := p.volumes.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, v := range volumes {
		if v.Spec.ClaimRef == nil && v.Spec.StorageClassName == volume.GetPersistentVolumeClaimClass(claim) {
			return nil
		}
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{%q:%q,%q:%q}}}`, claim.UID,
		volume.AnnBetaStorageProvisioner, Provisioner, volume.AnnStorageProvisioner, Provisioner)
	_, err = p.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("asking for the volume of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// chosen reports whether the scheduler has chosen a node for the claim's Pod, or the class does not
// wait for a node.
func chosen(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) bool {
	mode := class.VolumeBindingMode
	return mode == nil || *mode != storagev1.VolumeBindingWaitForFirstConsumer || claim.Annotations[volume.AnnSelectedNode] != ""
}

// newVolume returns the volume of a claim. The volume's name comes from the claim's UID, as with
// other provisioners, so a second attempt finds the volume of the first.
func (p *provisioner) newVolume(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	create := corev1.HostPathDirectoryOrCreate
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{volume.AnnDynamicallyProvisioned: Provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			VolumeMode:                    claim.Spec.VolumeMode,
			StorageClassName:              class.Name,
			MountOptions:                  class.MountOptions,
			PersistentVolumeReclaimPolicy: reclaim,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: p.path(name), Type: &create},
			},
		},
	}
}

func (p *provisioner) path(name string) string {
	if p.Root == "" {
		return filepath.Join(simulatedRoot, name)
	}
	return filepath.Join(p.Root, name)
}

// reclaim deletes a volume that the binder has released, with its content.
func (p *provisioner) reclaim(ctx context.Context, i item) error {
	v, err := p.volumes.Get(i.name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil || !abandoned(v) {
		return err
	}
	if p.Root != "" {
		if err := os.RemoveAll(p.path(v.Name)); err != nil {
			return fmt.Errorf("deleting the content of volume %s: %w", v.Name, err)
		}
	}
	uid := v.UID
	err = p.Client.CoreV1().PersistentVolumes().Delete(ctx, v.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting volume %s: %w", v.Name, err)
	}
	return nil
}

// abandoned reports whether this provisioner must delete the volume.
func abandoned(v *corev1.PersistentVolume) bool {
	return v.DeletionTimestamp == nil && v.Status.Phase == corev1.VolumeReleased &&
		v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		v.Annotations[volume.AnnDynamicallyProvisioned] == Provisioner
}
