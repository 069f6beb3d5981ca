package conformance

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// In the manifests, $NS stands for the namespace; see applyIn.
const (
	nginxDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx, namespace: $NS}
spec:
  replicas: 3
  selector: {matchLabels: {app: nginx}}
  strategy: {rollingUpdate: {maxUnavailable: 1, maxSurge: 1}}
  template:
    metadata: {labels: {app: nginx}}
    spec: {containers: [{name: nginx, image: "nginx:1.28"}]}
`
	nginxService = `
apiVersion: v1
kind: Service
metadata: {name: nginx, namespace: $NS}
spec:
  selector: {app: nginx}
  ports: [{port: 80}]
`
	nginxBudget = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: nginx, namespace: $NS}
spec:
  minAvailable: 3
  selector: {matchLabels: {app: nginx}}
`
	threeInOrder = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: $NS}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: db, image: postgres}]}
`
	onEveryNode = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: $NS}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      tolerations: [{key: conformance, operator: Equal, value: $NS}]
      containers: [{name: agent, image: agent}]
`
	threeTimes = `
apiVersion: batch/v1
kind: Job
metadata: {name: sum, namespace: $NS}
spec:
  completions: 3
  parallelism: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: sum, image: sum}]
`
	everyMinute = `
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: $NS}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: report, image: report}]
`
	onePod = `
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: $NS}
spec: {containers: [{name: web, image: nginx}]}
`
)

func TestDeploymentMakesOneReplicaSetThatMakesThePods(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, nginxDeployment)
	eventually(t, "a ReplicaSet of the Deployment with three Pods", func(ctx context.Context) error {
		deployment, err := p.client.AppsV1().Deployments(ns).Get(ctx, "nginx", metav1.GetOptions{})
		if err != nil {
			return err
		}
		sets, err := p.replicaSets(ctx, ns)
		if err != nil {
			return err
		}
		if len(sets) != 1 || !metav1.IsControlledBy(&sets[0], deployment) {
			return fmt.Errorf("ReplicaSets: %d, the first with owners %v", len(sets), ownersOf(sets))
		}
		pods, err := p.pods(ctx, ns)
		if err != nil {
			return err
		}
		for i := range pods {
			if !metav1.IsControlledBy(&pods[i], &sets[0]) {
				return fmt.Errorf("pod %s has owners %v", pods[i].Name, pods[i].OwnerReferences)
			}
		}
		return wantCount("pods", len(pods), 3)
	})
}

func TestPodsAreScheduledBeforeTheyRunAndAreReady(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	events := p.watchPods(t, ns)
	p.applyIn(t, ns, nginxDeployment)
	scheduled, ready := map[string]bool{}, map[string]bool{}
	for len(ready) < 3 {
		_, pod := nextPod(t, events)
		if (pod.Status.Phase == corev1.PodRunning || isReady(pod)) && !scheduled[pod.Name] {
			t.Fatalf("pod %s is %s, Ready %t, and no node was chosen before", pod.Name, pod.Status.Phase, isReady(pod))
		}
		scheduled[pod.Name] = pod.Spec.NodeName != ""
		if pod.Status.Phase == corev1.PodRunning && isReady(pod) {
			ready[pod.Name] = true
		}
	}
}

func TestDeploymentScalesUp(t *testing.T) {
	t.Parallel()
	p, ns := runningDeployment(t)
	p.kubectl(t, "scale", "-n", ns, "deployment/nginx", "--replicas=5")
	p.waitForReadyPods(t, ns, 5)
}

func TestDeploymentScalesDown(t *testing.T) {
	t.Parallel()
	p, ns := runningDeployment(t)
	p.kubectl(t, "scale", "-n", ns, "deployment/nginx", "--replicas=1")
	p.waitForReadyPods(t, ns, 1)
}

func TestDeletedPodOfADeploymentIsReplaced(t *testing.T) {
	t.Parallel()
	p, ns := runningDeployment(t)
	pods, err := p.pods(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	gone := pods[0].Name
	p.kubectl(t, "delete", "pod", "-n", ns, gone)
	p.waitForReadyPods(t, ns, 3)
	if pods, err = p.pods(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return pod.Name == gone }) {
		t.Errorf("pod %s is still there", gone)
	}
}

func TestStatefulSetCreatesEachPodAfterTheOneBeforeIsReady(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	events := p.watchPods(t, ns)
	p.applyIn(t, ns, threeInOrder)
	ready := map[int]bool{}
	for next := 0; len(ready) < 3; {
		kind, pod := nextPod(t, events)
		ordinal := ordinalOf(t, pod)
		if kind == watch.Added {
			if ordinal != next || ordinal > 0 && !ready[ordinal-1] {
				t.Fatalf("pod %d was created when %v were ready; want pod %d, after the ones before it", ordinal, ready, next)
			}
			next++
		}
		if isReady(pod) {
			ready[ordinal] = true
		}
	}
}

func TestStatefulSetRemovesPodsInReverseOrder(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, threeInOrder)
	p.waitForReadyPods(t, ns, 3)
	events := p.watchPods(t, ns)
	p.kubectl(t, "scale", "-n", ns, "statefulset/db", "--replicas=0")
	for left := 3; left > 0; {
		kind, pod := nextPod(t, events)
		ordinal := ordinalOf(t, pod)
		if pod.DeletionTimestamp != nil && ordinal != left-1 {
			t.Fatalf("pod %d is being deleted while pods 0 to %d exist", ordinal, left-1)
		}
		if kind == watch.Deleted {
			left--
		}
	}
}

func TestJobCompletes(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, threeTimes)
	eventually(t, "the Job to complete", func(ctx context.Context) error {
		job, err := p.client.BatchV1().Jobs(ns).Get(ctx, "sum", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range job.Status.Conditions {
			if c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue {
				return wantCount("succeeded", int(job.Status.Succeeded), 3)
			}
		}
		return fmt.Errorf("status is %+v", job.Status)
	})
}

// According to its status, the last run of the CronJob was two minutes ago, so the next
// run is due immediately.
func TestCronJobMakesTheJobThatIsDue(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, everyMinute)
	last := time.Now().Add(-2 * time.Minute).UTC().Format(time.RFC3339)
	p.kubectl(t, "patch", "cronjob", "-n", ns, "report", "--subresource=status", "--type=merge",
		"-p", `{"status":{"lastScheduleTime":"`+last+`"}}`)
	eventually(t, "a Job of the CronJob", func(ctx context.Context) error {
		cron, err := p.client.BatchV1().CronJobs(ns).Get(ctx, "report", metav1.GetOptions{})
		if err != nil {
			return err
		}
		jobs, err := p.client.BatchV1().Jobs(ns).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(jobs.Items) == 0 || !metav1.IsControlledBy(&jobs.Items[0], cron) {
			return fmt.Errorf("there are %d Jobs", len(jobs.Items))
		}
		return nil
	})
}

func TestRollingUpdateReplacesAllPods(t *testing.T) {
	t.Parallel()
	p, ns := runningDeployment(t)
	p.kubectl(t, "set", "image", "-n", ns, "deployment/nginx", "nginx=nginx:1.29")
	p.waitForRollout(t, ns, "nginx:1.29")
	sets, err := p.replicaSets(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	replicas := map[string]int32{}
	for _, set := range sets {
		replicas[set.Spec.Template.Spec.Containers[0].Image] = *set.Spec.Replicas
	}
	if len(sets) != 2 || replicas["nginx:1.28"] != 0 || replicas["nginx:1.29"] != 3 {
		t.Errorf("replicas by image are %v in %d ReplicaSets; want 2 ReplicaSets, with all replicas in the new one", replicas, len(sets))
	}
}

func TestRollingUpdateKeepsAllButMaxUnavailable(t *testing.T) {
	t.Parallel()
	p, ns := runningDeployment(t)
	available := map[string]bool{}
	pods, err := p.pods(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		available[pod.Name] = true
	}
	events := p.watchPods(t, ns)
	p.kubectl(t, "set", "image", "-n", ns, "deployment/nginx", "nginx=nginx:1.29")
	for updated := 0; updated < 3; {
		kind, pod := nextPod(t, events)
		was := available[pod.Name]
		available[pod.Name] = kind != watch.Deleted && pod.DeletionTimestamp == nil && isReady(pod)
		if available[pod.Name] && !was && pod.Spec.Containers[0].Image == "nginx:1.29" {
			updated++
		}
		if n := countTrue(available); n < 2 {
			t.Fatalf("%d pods are available; with maxUnavailable 1 of 3 there must be 2", n)
		}
	}
}

func TestRolloutUndoRestoresTheEarlierTemplate(t *testing.T) {
	t.Parallel()
	p, ns := runningDeployment(t)
	p.kubectl(t, "set", "image", "-n", ns, "deployment/nginx", "nginx=nginx:1.29")
	p.waitForRollout(t, ns, "nginx:1.29")
	p.kubectl(t, "rollout", "undo", "-n", ns, "deployment/nginx")
	p.waitForRollout(t, ns, "nginx:1.28")
	sets, err := p.replicaSets(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	// The controller scales the earlier ReplicaSet up again instead of creating another
	// one.
	if err := wantCount("ReplicaSets", len(sets), 2); err != nil {
		t.Error(err)
	}
}

func TestDaemonSetRunsAPodOnEveryNode(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, onEveryNode)
	p.waitForPodsOn(t, ns, "node-1", "node-2", "node-3")
}

func TestDaemonSetRunsAPodOnANodeThatIsAddedLater(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	p.applyIn(t, ns, onEveryNode)
	p.waitForPodsOn(t, ns, "node-1", "node-2", "node-3")
	late := p.addNode(t, ns)
	p.waitForPodsOn(t, ns, late, "node-1", "node-2", "node-3")
}

func TestEndpointSlicesListTheReadyPodsOfAService(t *testing.T) {
	t.Parallel()
	p, ns := runningDeployment(t)
	p.applyIn(t, ns, nginxService)
	p.waitForEndpoints(t, ns, p.readyPodIPs(t, ns))
	pods, err := p.pods(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.client.CoreV1().Pods(ns).Patch(t.Context(), pods[0].Name, types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"Ready","status":"False"}]}}`), metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
	p.waitForEndpoints(t, ns, []string{pods[1].Status.PodIP, pods[2].Status.PodIP})
	p.kubectl(t, "delete", "pod", "-n", ns, pods[0].Name)
	p.waitForReadyPods(t, ns, 3)
	p.waitForEndpoints(t, ns, p.readyPodIPs(t, ns))
}

func TestDisruptionBudgetRefusesAnEviction(t *testing.T) {
	t.Parallel()
	p, ns := runningDeployment(t)
	p.applyIn(t, ns, nginxBudget)
	p.waitForBudget(t, ns, 0)
	pods, err := p.pods(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	err = p.evict(t.Context(), ns, pods[0].Name)
	if !apierrors.IsTooManyRequests(err) || !apierrors.HasStatusCause(err, policyv1.DisruptionBudgetCause) {
		t.Errorf("the eviction answers %v; want 429 because of the budget", err)
	}
}

func TestDisruptionBudgetGrantsAnEvictionThatItCanAfford(t *testing.T) {
	t.Parallel()
	p, ns := runningDeployment(t)
	p.applyIn(t, ns, nginxBudget)
	p.kubectl(t, "scale", "-n", ns, "deployment/nginx", "--replicas=4")
	p.waitForReadyPods(t, ns, 4)
	p.waitForBudget(t, ns, 1)
	pods, err := p.pods(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.evict(t.Context(), ns, pods[0].Name); err != nil {
		t.Errorf("the eviction answers %v", err)
	}
}

func TestLogsSayThatThePodIsSimulated(t *testing.T) {
	t.Parallel()
	p, ns := runningPod(t)
	if out := p.kubectl(t, "logs", "-n", ns, "web"); !strings.Contains(out, "pod "+ns+"/web is simulated") {
		t.Errorf("kubectl logs says %q", out)
	}
}

func TestExecFailsAndSaysThatThePodIsSimulated(t *testing.T) {
	t.Parallel()
	p, ns := runningPod(t)
	out, err := p.tryKubectl("", "exec", "-n", ns, "web", "--", "true")
	if err == nil || !strings.Contains(out, "pod "+ns+"/web is simulated") {
		t.Errorf("kubectl exec ends with %v and says %q", err, out)
	}
}

func TestPortForwardFailsAndSaysThatThePodIsSimulated(t *testing.T) {
	t.Parallel()
	p, ns := runningPod(t)
	out, err := p.tryKubectl("", "port-forward", "-n", ns, "pod/web", ":80")
	if err == nil || !strings.Contains(out, "pod "+ns+"/web is simulated") {
		t.Errorf("kubectl port-forward ends with %v and says %q", err, out)
	}
}

// runningDeployment returns a namespace in which the Pods of nginxDeployment are Ready.
func runningDeployment(t *testing.T) (p *plane, ns string) {
	t.Helper()
	p = sharedPlane(t)
	ns = p.namespace(t)
	p.applyIn(t, ns, nginxDeployment)
	p.waitForRollout(t, ns, "nginx:1.28")
	return p, ns
}

func runningPod(t *testing.T) (p *plane, ns string) {
	t.Helper()
	p = sharedPlane(t)
	ns = p.namespace(t)
	p.applyIn(t, ns, onePod)
	p.waitForReadyPods(t, ns, 1)
	return p, ns
}

// applyIn applies manifests in which $NS stands for the namespace.
func (p *plane) applyIn(t *testing.T, ns, manifests string) {
	t.Helper()
	p.apply(t, strings.ReplaceAll(manifests, "$NS", ns))
}

func (p *plane) pods(ctx context.Context, ns string) ([]corev1.Pod, error) {
	list, err := p.client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func (p *plane) replicaSets(ctx context.Context, ns string) ([]appsv1.ReplicaSet, error) {
	list, err := p.client.AppsV1().ReplicaSets(ns).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// waitForReadyPods waits until the namespace has exactly n Pods and all are
// Running and Ready.
func (p *plane) waitForReadyPods(t *testing.T, ns string, n int) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d ready pods", n), func(ctx context.Context) error {
		pods, err := p.pods(ctx, ns)
		if err != nil {
			return err
		}
		for i := range pods {
			if pods[i].Status.Phase != corev1.PodRunning || !isReady(&pods[i]) {
				return fmt.Errorf("pod %s is %s, Ready %t", pods[i].Name, pods[i].Status.Phase, isReady(&pods[i]))
			}
		}
		return wantCount("pods", len(pods), n)
	})
}

// waitForRollout waits until both the Deployment's status and its Pods show that exactly
// three Pods are running, all with the image.
func (p *plane) waitForRollout(t *testing.T, ns, image string) {
	t.Helper()
	eventually(t, "three pods of "+image, func(ctx context.Context) error {
		d, err := p.client.AppsV1().Deployments(ns).Get(ctx, "nginx", metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := d.Status
		if s.ObservedGeneration != d.Generation || s.Replicas != 3 || s.UpdatedReplicas != 3 || s.AvailableReplicas != 3 {
			return fmt.Errorf("status is %+v at generation %d", s, d.Generation)
		}
		pods, err := p.pods(ctx, ns)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if pod.Spec.Containers[0].Image != image {
				return fmt.Errorf("pod %s runs %s", pod.Name, pod.Spec.Containers[0].Image)
			}
		}
		return wantCount("pods", len(pods), 3)
	})
}

func (p *plane) waitForPodsOn(t *testing.T, ns string, nodes ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("a ready pod on each of %v", nodes), func(ctx context.Context) error {
		pods, err := p.pods(ctx, ns)
		if err != nil {
			return err
		}
		var on []string
		for i := range pods {
			if isReady(&pods[i]) {
				on = append(on, pods[i].Spec.NodeName)
			}
		}
		return wantSet("nodes with a ready pod", on, nodes)
	})
}

// addNode adds a simulated node in the way that users of KWOK do. The node takes only the
// Pods of one test.
func (p *plane) addNode(t *testing.T, forNamespace string) (name string) {
	t.Helper()
	name = "late-" + forNamespace
	_, err := p.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "conformance", Value: forNamespace, Effect: corev1.TaintEffectNoSchedule}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.client.CoreV1().Nodes().Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return name
}

func (p *plane) readyPodIPs(t *testing.T, ns string) (ips []string) {
	t.Helper()
	pods, err := p.pods(t.Context(), ns)
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods {
		if isReady(&pods[i]) {
			ips = append(ips, pods[i].Status.PodIP)
		}
	}
	return ips
}

func (p *plane) waitForEndpoints(t *testing.T, ns string, ips []string) {
	t.Helper()
	eventually(t, fmt.Sprintf("EndpointSlices with %v", ips), func(ctx context.Context) error {
		slices, err := p.client.DiscoveryV1().EndpointSlices(ns).List(ctx, metav1.ListOptions{
			LabelSelector: discoveryv1.LabelServiceName + "=nginx",
		})
		if err != nil {
			return err
		}
		var ready []string
		for _, slice := range slices.Items {
			for _, e := range slice.Endpoints {
				if e.Conditions.Ready != nil && *e.Conditions.Ready {
					ready = append(ready, e.Addresses...)
				}
			}
		}
		return wantSet("ready addresses", ready, ips)
	})
}

func (p *plane) waitForBudget(t *testing.T, ns string, allowed int32) {
	t.Helper()
	eventually(t, fmt.Sprintf("a budget of %d disruptions", allowed), func(ctx context.Context) error {
		pdb, err := p.client.PolicyV1().PodDisruptionBudgets(ns).Get(ctx, "nginx", metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := pdb.Status
		if s.ObservedGeneration != pdb.Generation || s.ExpectedPods != 3+allowed || s.DisruptionsAllowed != allowed {
			return fmt.Errorf("status is %+v", s)
		}
		return nil
	})
}

func (p *plane) evict(ctx context.Context, ns, pod string) error {
	return p.client.PolicyV1().Evictions(ns).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: ns}})
}

// watchPods watches the Pods of a namespace from now on.
func (p *plane) watchPods(t *testing.T, ns string) watch.Interface {
	t.Helper()
	list, err := p.client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := p.client.CoreV1().Pods(ns).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func nextPod(t *testing.T, w watch.Interface) (watch.EventType, *corev1.Pod) {
	t.Helper()
	event := nextEvent(t, w)
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		t.Fatalf("event %s holds %v", event.Type, event.Object)
	}
	return event.Type, pod
}

// nextEvent returns the next event of a watch, and fails the test if the watch
// ends or delivers nothing.
func nextEvent(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch ended")
		}
		return event
	case <-time.After(within):
		t.Fatalf("the watch delivers nothing within %v", within)
	}
	return watch.Event{}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func ordinalOf(t *testing.T, pod *corev1.Pod) int {
	t.Helper()
	_, suffix, _ := strings.Cut(pod.Name, "-")
	ordinal, err := strconv.Atoi(suffix)
	if err != nil {
		t.Fatalf("pod %s is not of a StatefulSet: %v", pod.Name, err)
	}
	return ordinal
}

func ownersOf(sets []appsv1.ReplicaSet) []metav1.OwnerReference {
	if len(sets) == 0 {
		return nil
	}
	return sets[0].OwnerReferences
}

func countTrue(m map[string]bool) (n int) {
	for _, yes := range m {
		if yes {
			n++
		}
	}
	return n
}

func wantCount(what string, got, want int) error {
	if got != want {
		return fmt.Errorf("%s: %d; want %d", what, got, want)
	}
	return nil
}

func wantSet(what string, got, want []string) error {
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s: %v; want %v", what, got, want)
	}
	return nil
}
