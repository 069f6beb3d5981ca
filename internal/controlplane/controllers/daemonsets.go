package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/daemon"

	"github.com/koboshi-dev/koboshi/internal/programs"
)

// DaemonSets is the name of the controller that RunDaemonSets runs.
const DaemonSets = names.DaemonSetController

// These are upstream's defaults for the controller.
const (
	daemonSetWorkers    = 2
	daemonSetFirstDelay = time.Second
	daemonSetLastDelay  = 15 * time.Minute
)

// RunDaemonSets runs upstream's DaemonSet controller until ctx ends. RunDaemonSets replaces the
// controller in kube-controller-manager, because the informers of kube-controller-manager accept no
// transform. The controller creates a Pod for every node that fits, without knowing which images a
// node can run. On a node that runs programs, the Pod of a DaemonSet without a program's image
// would stay Pending, and the DaemonSet would never be complete. The transform therefore makes a
// DaemonSet without a program's image avoid the nodes that run programs.
func RunDaemonSets(ctx context.Context, config *rest.Config, run programs.Set) error {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = clientQPS, clientBurst
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(withoutManagedFields))
	sets := factory.Apps().V1().DaemonSets()
	if err := sets.Informer().SetTransform(keptAway(run)); err != nil {
		return fmt.Errorf("watching DaemonSets: %w", err)
	}
	controller, err := daemon.NewDaemonSetsController(ctx, sets, factory.Apps().V1().ControllerRevisions(),
		factory.Core().V1().Pods(), factory.Core().V1().Nodes(), client, flowcontrol.NewBackOff(daemonSetFirstDelay, daemonSetLastDelay))
	if err != nil {
		return fmt.Errorf("configuring the DaemonSet controller: %w", err)
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	controller.Run(ctx, daemonSetWorkers)
	return nil
}

func withoutManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// keptAway returns the transform through which the controller sees a DaemonSet.
// The requirement that keptAway adds appears in the ControllerRevisions, but
// the DaemonSet itself is not changed, and Pods get the usual affinity to one
// node.
func keptAway(run programs.Set) func(any) (any, error) {
	return func(object any) (any, error) {
		set, ok := object.(*appsv1.DaemonSet)
		if !ok || (localPrograms{run}).need(&corev1.Pod{Spec: set.Spec.Template.Spec}).local {
			return withoutManagedFields(object)
		}
		set.Spec.Template.Spec.Affinity = elsewhere(set.Spec.Template.Spec.Affinity)
		return withoutManagedFields(set)
	}
}

// elsewhere adds to an affinity the requirement that the node runs no programs.
func elsewhere(affinity *corev1.Affinity) *corev1.Affinity {
	noPrograms := corev1.NodeSelectorRequirement{Key: localLabel, Operator: corev1.NodeSelectorOpNotIn, Values: []string{localValue}}
	affinity = affinity.DeepCopy()
	if affinity == nil {
		affinity = &corev1.Affinity{}
	}
	if affinity.NodeAffinity == nil {
		affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := &affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if *required == nil {
		*required = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	// A node must match all requirements of one term, so noPrograms is added to
	// every term. A term may already contain noPrograms, since an informer may
	// transform an object twice.
	for i := range (*required).NodeSelectorTerms {
		term := &(*required).NodeSelectorTerms[i]
		if !slices.ContainsFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return equality.Semantic.DeepEqual(r, noPrograms) }) {
			term.MatchExpressions = append(term.MatchExpressions, noPrograms)
		}
	}
	return affinity
}
