package conformance

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// In the manifests, $NS stands for the namespace; see applyIn.
const (
	threeWithClaims = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: $NS}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: db, image: postgres, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 2Gi}}
`
	claimAndPod = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: $NS}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: $NS, finalizers: [example.com/hold]}
spec:
  containers: [{name: web, image: nginx}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`
	retainingClass = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: retain-$NS}
provisioner: koboshi.dev/simulated
reclaimPolicy: Retain
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: $NS}
spec:
  storageClassName: retain-$NS
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
`
	podWithClaim = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: $NS}
spec:
  containers: [{name: web, image: nginx}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`
	podWithEphemeralVolume = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: $NS}
spec:
  containers: [{name: web, image: nginx}]
  volumes:
  - name: scratch
    ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}
`
)

var (
	sharedWorkloads     *plane
	sharedWorkloadsOnce sync.Once
)

// workloadsPlane returns the plane with profile workloads. Tests use only their own
// namespace in it.
func workloadsPlane(t *testing.T) *plane {
	t.Helper()
	sharedWorkloadsOnce.Do(func() {
		dir, err := os.MkdirTemp("", "koboshi-conformance-")
		if err != nil {
			t.Fatal(err)
		}
		if sharedWorkloads, err = launch(dir, "--ephemeral", "--profile=workloads"); err != nil {
			t.Fatal(err)
		}
	})
	if sharedWorkloads == nil {
		t.Fatal("the plane with profile workloads did not start; see the first test that needed it")
	}
	return sharedWorkloads
}

func TestPodsOfAStatefulSetRunWithClaimsThatAreBound(t *testing.T) {
	t.Parallel()
	p := workloadsPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, threeWithClaims)
	p.waitForReadyPods(t, ns, 3)
	claims, err := p.client.CoreV1().PersistentVolumeClaims(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, claim := range claims.Items {
		names = append(names, claim.Name)
		v, err := p.client.CoreV1().PersistentVolumes().Get(t.Context(), claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		size := claim.Status.Capacity[corev1.ResourceStorage]
		if claim.Status.Phase != corev1.ClaimBound || v.Status.Phase != corev1.VolumeBound || v.Spec.ClaimRef.UID != claim.UID ||
			size.String() != "2Gi" || *claim.Spec.StorageClassName != "standard" {
			t.Errorf("claim %s of class %s is %s with %s, its volume is %s for claim %v",
				claim.Name, *claim.Spec.StorageClassName, claim.Status.Phase, size.String(), v.Status.Phase, v.Spec.ClaimRef)
		}
	}
	if err := wantSet("claims", names, []string{"data-db-0", "data-db-1", "data-db-2"}); err != nil {
		t.Error(err)
	}
}

func TestClaimThatAPodUsesStaysTerminatingUntilThePodIsGone(t *testing.T) {
	t.Parallel()
	p := workloadsPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, claimAndPod)
	p.waitForReadyPods(t, ns, 1)
	claims := p.client.CoreV1().PersistentVolumeClaims(ns)
	claim, err := claims.Get(t.Context(), "data", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.kubectl(t, "delete", "pvc", "-n", ns, "data", "--wait=false")
	p.kubectl(t, "delete", "pod", "-n", ns, "web", "--wait=false")
	// The Pod has a finalizer, and so keeps its claim.
	never(t, "the claim stays", mistakeShows, func(ctx context.Context) error {
		claim, err := claims.Get(ctx, "data", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if claim.DeletionTimestamp == nil || !slices.Contains(claim.Finalizers, "kubernetes.io/pvc-protection") {
			return fmt.Errorf("the claim is not terminating: finalizers %v", claim.Finalizers)
		}
		return nil
	})
	p.kubectl(t, "patch", "pod", "-n", ns, "web", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	eventually(t, "the claim and its volume to disappear", func(ctx context.Context) error {
		if _, err := claims.Get(ctx, "data", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the claim: %w", err)
		}
		if _, err := p.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading the volume: %w", err)
		}
		return nil
	})
}

func TestVolumeOfAClassThatWaitsAndRetainsIsBoundLateAndStays(t *testing.T) {
	t.Parallel()
	p := workloadsPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, retainingClass)
	claims := p.client.CoreV1().PersistentVolumeClaims(ns)
	// The Event shows that the binder has decided to wait.
	eventually(t, "the claim to wait for a Pod", func(ctx context.Context) error {
		list, err := p.client.CoreV1().Events(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == "WaitForFirstConsumer" {
				return nil
			}
		}
		return fmt.Errorf("%d Events", len(list.Items))
	})
	if claim, err := claims.Get(t.Context(), "data", metav1.GetOptions{}); err != nil || claim.Status.Phase != corev1.ClaimPending {
		t.Fatalf("the claim is %+v (%v), want it to be Pending", claim.Status, err)
	}
	p.applyIn(t, ns, podWithClaim)
	p.waitForReadyPods(t, ns, 1)
	claim, err := claims.Get(t.Context(), "data", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.kubectl(t, "delete", "pod", "-n", ns, "web")
	p.kubectl(t, "delete", "pvc", "-n", ns, "data")
	eventually(t, "the volume to be released", func(ctx context.Context) error {
		v, err := p.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
		if err == nil && v.Status.Phase != corev1.VolumeReleased {
			err = fmt.Errorf("the volume is %s", v.Status.Phase)
		}
		return err
	})
	p.kubectl(t, "delete", "pv", claim.Spec.VolumeName)
	p.kubectl(t, "delete", "storageclass", "retain-"+ns)
}

func TestPodRunsWithAnEphemeralVolume(t *testing.T) {
	t.Parallel()
	p := workloadsPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, podWithEphemeralVolume)
	p.waitForReadyPods(t, ns, 1)
	claim, err := p.client.CoreV1().PersistentVolumeClaims(ns).Get(t.Context(), "web-scratch", metav1.GetOptions{})
	if err != nil || claim.Status.Phase != corev1.ClaimBound {
		t.Errorf("the claim of the Pod is %+v (%v)", claim, err)
	}
}

func TestEndpointsListTheReadyPodsOfAService(t *testing.T) {
	t.Parallel()
	p := workloadsPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, nginxDeployment+"---"+nginxService)
	p.waitForReadyPods(t, ns, 3)
	p.waitForEndpoints(t, ns, p.readyPodIPs(t, ns))
	eventually(t, "the Endpoints of the Service", func(ctx context.Context) error {
		out, err := p.tryKubectl("", "get", "endpoints", "-n", ns, "nginx", "-o", "jsonpath={.subsets[*].addresses[*].ip}")
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		// kubectl prints the API server's warning that Endpoints are deprecated.
		lines := strings.Split(strings.TrimSpace(out), "\n")
		return wantSet("addresses", strings.Fields(lines[len(lines)-1]), p.readyPodIPs(t, ns))
	})
}

func TestEndpointsThatAClientWritesAreMirroredToAnEndpointSlice(t *testing.T) {
	t.Parallel()
	p := workloadsPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, `
apiVersion: v1
kind: Service
metadata: {name: nginx, namespace: $NS}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: nginx, namespace: $NS}
subsets: [{addresses: [{ip: 192.0.2.7}], ports: [{port: 80}]}]
`)
	p.waitForEndpoints(t, ns, []string{"192.0.2.7"})
}
