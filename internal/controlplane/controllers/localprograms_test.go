package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/koboshi-dev/koboshi/internal/programs"
)

var (
	plugin    = localPrograms{programs.Set{{Image: "web", Path: "/web"}}}
	localNode = node("local", localValue)
	otherNode = node("node-1", "simulated")
	foreign   = node("mine", "")
)

func node(name, label string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if label != "" {
		n.Labels = map[string]string{localLabel: label}
	}
	return n
}

func podOf(init []string, images ...string) *corev1.Pod {
	pod := &corev1.Pod{}
	for _, image := range init {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Image: image})
	}
	for _, image := range images {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Image: image})
	}
	return pod
}

func ownedBy(kind string, pod *corev1.Pod) *corev1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Controller: new(true)}}
	return pod
}

func TestPodsWithAProgramAndAllOthersNeverMeet(t *testing.T) {
	for _, test := range []struct {
		name             string
		pod              *corev1.Pod
		onLocal, onOther string // why the Pod does not fit on the node
	}{
		{"an image with a program", podOf(nil, "web:1"), "", onlySimulates},
		{"one of two images", podOf(nil, "db", "web"), "", onlySimulates},
		{"an init container's image", podOf([]string{"web"}, "db"), "", onlySimulates},
		{"another image", podOf(nil, "db"), onlyRuns, ""},
		{"a name that begins alike", podOf(nil, "website"), onlyRuns, ""},
		{"a ReplicaSet's", ownedBy("ReplicaSet", podOf(nil, "web")), "", onlySimulates},
		{"a DaemonSet's with a program", ownedBy("DaemonSet", podOf(nil, "web")), "", ""},
		{"a DaemonSet's without", ownedBy("DaemonSet", podOf(nil, "db")), onlyRuns, ""},
	} {
		state := framework.NewCycleState()
		if _, status := plugin.PreFilter(t.Context(), state, test.pod, nil); !status.IsSuccess() {
			t.Fatal(status)
		}
		for n, want := range map[*corev1.Node]string{localNode: test.onLocal, otherNode: test.onOther, foreign: test.onOther} {
			info := framework.NewNodeInfo()
			info.SetNode(n)
			status := plugin.Filter(t.Context(), state, test.pod, info)
			if got := status.Message(); got != want || status.IsSuccess() != (want == "") {
				t.Errorf("%s on %s: %q, want %q", test.name, n.Name, got, want)
			}
			if !status.IsSuccess() && status.Code() != fwk.UnschedulableAndUnresolvable {
				t.Errorf("%s on %s: %v; preemption would be tried", test.name, n.Name, status.Code())
			}
		}
	}
}

func TestRejectedPodIsRetriedWhenANodeItNeedsAppears(t *testing.T) {
	for _, test := range []struct {
		name string
		pod  *corev1.Pod
		node *corev1.Node
		want fwk.QueueingHint
	}{
		{"a program and the node for it", podOf(nil, "web"), localNode, fwk.Queue},
		{"a program and another node", podOf(nil, "web"), otherNode, fwk.QueueSkip},
		{"no program and the node for them", podOf(nil, "db"), localNode, fwk.QueueSkip},
		{"no program and another node", podOf(nil, "db"), otherNode, fwk.Queue},
	} {
		got, err := plugin.afterNode(klog.Logger{}, test.pod, nil, test.node)
		if err != nil || got != test.want {
			t.Errorf("%s: %v, %v; want %v", test.name, got, err, test.want)
		}
	}
}

func TestRejectedPodIsRetriedWhenItsImageBecomesAProgram(t *testing.T) {
	web, db := podOf(nil, "web"), podOf(nil, "db")
	for _, test := range []struct {
		before, after *corev1.Pod
		want          fwk.QueueingHint
	}{
		{db, web, fwk.Queue},
		{web, db, fwk.Queue},
		{db, podOf(nil, "db:2"), fwk.QueueSkip},
	} {
		if got, err := plugin.afterPod(klog.Logger{}, test.before, test.before, test.after); err != nil || got != test.want {
			t.Errorf("%v to %v: %v, %v; want %v", test.before.Spec.Containers, test.after.Spec.Containers, got, err, test.want)
		}
	}
}

func TestPodsThatNeedDifferentNodesHaveDifferentSignatures(t *testing.T) {
	sign := func(pod *corev1.Pod) any {
		fragments, status := plugin.SignPod(t.Context(), pod)
		if !status.IsSuccess() || len(fragments) != 1 {
			t.Fatalf("%v, %v", fragments, status)
		}
		return fragments[0].Value
	}
	web, db, daemon := sign(podOf(nil, "web")), sign(podOf(nil, "db")), sign(ownedBy("DaemonSet", podOf(nil, "web")))
	if cmp.Equal(web, db) || cmp.Equal(web, daemon) || cmp.Equal(db, daemon) {
		t.Errorf("signatures %v, %v, %v", web, db, daemon)
	}
	if !cmp.Equal(web, sign(podOf(nil, "db", "web:2"))) {
		t.Error("two Pods with programs have different signatures")
	}
}

func TestWithoutProgramsTheSchedulerIsConfiguredAsBefore(t *testing.T) {
	want, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	got := want.DeepCopy()
	if registry := separate(got, nil); registry != nil || !cmp.Equal(got, want) {
		t.Errorf("registry %v\n%s", registry, cmp.Diff(want, got))
	}
}

func TestPluginFiltersInEveryProfile(t *testing.T) {
	cfg, err := latest.Default()
	if err != nil {
		t.Fatal(err)
	}
	registry := separate(cfg, plugin.programs)
	for _, profile := range cfg.Profiles {
		enabled := profile.Plugins.MultiPoint.Enabled
		if last := enabled[len(enabled)-1].Name; registry[last] == nil {
			t.Errorf("profile %s ends with plugin %s, which the registry does not have", profile.SchedulerName, last)
		}
	}
	if len(cfg.Profiles) == 0 {
		t.Error("there is no profile")
	}
}
