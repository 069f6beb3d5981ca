package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/koboshi-dev/koboshi/internal/programs"
)

// LocalPrograms is the name of the scheduler plugin that separates two groups of Pods. The plugin
// allows Pods whose image stands for a program only on the nodes that run programs, and all other
// Pods only on the other nodes.
//
// The Pods of a DaemonSet are bound to a node before the plugin sees them.
// DaemonSet Pods whose image stands for a program may also be simulated on the
// nodes that run no programs.
const LocalPrograms = "LocalPrograms"

// These are the label and the value that mark a node that runs programs.
const (
	localLabel = "koboshi.dev/node"
	localValue = "local"
)

// These are the reasons why a node does not fit, as shown in a Pod's
// FailedScheduling event.
const (
	onlySimulates = "node(s) only simulate Pods, but this Pod has an image given with --run"
	onlyRuns      = "node(s) only run Pods with an image given with --run"
)

// separate adds the plugin to all scheduler profiles if there are programs, and
// returns the registry that contains the plugin.
func separate(cfg *config.KubeSchedulerConfiguration, run programs.Set) frameworkruntime.Registry {
	if len(run) == 0 {
		return nil
	}
	for i := range cfg.Profiles {
		enabled := &cfg.Profiles[i].Plugins.MultiPoint.Enabled
		*enabled = append(*enabled, config.Plugin{Name: LocalPrograms})
	}
	return frameworkruntime.Registry{
		LocalPrograms: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
			return localPrograms{run}, nil
		},
	}
}

type localPrograms struct {
	programs programs.Set
}

var (
	_ fwk.PreFilterPlugin   = localPrograms{}
	_ fwk.FilterPlugin      = localPrograms{}
	_ fwk.EnqueueExtensions = localPrograms{}
	_ fwk.SignPlugin        = localPrograms{}
)

// A need is the kind of node that a Pod requires. The need is computed once per Pod and reused to
// filter all nodes.
type need struct {
	local     bool // a node that runs programs
	simulated bool // a node that simulates Pods
}

// Clone returns n itself, because a need never changes.
func (n need) Clone() fwk.StateData { return n }

func (n need) metBy(node *corev1.Node) bool {
	if node.Labels[localLabel] == localValue {
		return n.local
	}
	return n.simulated
}

func (p localPrograms) need(pod *corev1.Pod) need {
	images := make([]string, 0, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))
	for _, c := range pod.Spec.InitContainers {
		images = append(images, c.Image)
	}
	for _, c := range pod.Spec.Containers {
		images = append(images, c.Image)
	}
	if !p.programs.Any(images...) {
		return need{simulated: true}
	}
	owner := metav1.GetControllerOf(pod)
	return need{local: true, simulated: owner != nil && owner.Kind == "DaemonSet"}
}

func (localPrograms) Name() string { return LocalPrograms }

// PreFilter computes the Pod's need.
func (p localPrograms) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	state.Write(LocalPrograms, p.need(pod))
	return nil, nil
}

// PreFilterExtensions returns nil, because the need of a Pod does not depend on
// other Pods.
func (localPrograms) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter accepts the nodes that satisfy the Pod's need. Preemption cannot make
// other nodes fit.
func (localPrograms) Filter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	found, err := state.Read(LocalPrograms)
	if err != nil {
		return fwk.AsStatus(err)
	}
	switch n := found.(need); {
	case n.metBy(node.Node()):
		return nil
	case n.simulated:
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, onlyRuns)
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, onlySimulates)
}

// SignPod gives Pods with different needs different signatures, so that the
// result for one Pod is not reused for the other.
func (p localPrograms) SignPod(_ context.Context, pod *corev1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	n := p.need(pod)
	return []fwk.SignFragment{{Key: LocalPrograms, Value: []bool{n.local, n.simulated}}}, nil
}

// EventsToRegister returns the events after which the scheduler tries a
// rejected Pod again: a node of the right kind has appeared, or the Pod has
// other images and needs another kind of node.
func (p localPrograms) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{
			Event:          fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel},
			QueueingHintFn: p.afterNode,
		},
		{
			Event:          fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.Update},
			QueueingHintFn: p.afterPod,
		},
	}, nil
}

func (p localPrograms) afterNode(_ klog.Logger, pod *corev1.Pod, _, changed any) (fwk.QueueingHint, error) {
	if node, ok := changed.(*corev1.Node); ok && !p.need(pod).metBy(node) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

func (p localPrograms) afterPod(_ klog.Logger, _ *corev1.Pod, before, after any) (fwk.QueueingHint, error) {
	was, ok := before.(*corev1.Pod)
	is, alsoOK := after.(*corev1.Pod)
	if ok && alsoOK && p.need(was) == p.need(is) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
