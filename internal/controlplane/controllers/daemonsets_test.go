package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/koboshi-dev/koboshi/internal/programs"
)

func TestADaemonSetWithoutProgramsKeepsAwayFromTheNodeThatRunsThem(t *testing.T) {
	t.Parallel()
	run := programs.Set{{Image: "web", Path: "/bin/sh"}}
	zone := func(values ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: values}}}
	}
	required := func(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
	node := func(labels map[string]string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: labels}}
	}
	local := node(map[string]string{localLabel: localValue, "zone": "a"})
	simulated := node(map[string]string{localLabel: "simulated", "zone": "a"})
	foreign := node(map[string]string{"zone": "a"})
	for name, test := range map[string]struct {
		image                     string
		affinity                  *corev1.Affinity
		local, simulated, foreign bool
	}{
		"a program":             {"web:1", nil, true, true, true},
		"no program":            {"nginx", nil, false, true, true},
		"one of several terms":  {"nginx", required(zone("b"), zone("a")), false, true, true},
		"terms that do not fit": {"nginx", required(zone("b")), false, false, false},
		"another affinity":      {"nginx", &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{}}, false, true, true},
		"a program with terms":  {"web", required(zone("b")), false, false, false},
	} {
		set := &appsv1.DaemonSet{}
		set.ManagedFields = []metav1.ManagedFieldsEntry{{}}
		set.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{{Image: test.image}}, Affinity: test.affinity}
		object, err := keptAway(run)(set)
		if err != nil {
			t.Fatal(err)
		}
		seen := object.(*appsv1.DaemonSet)
		once := seen.DeepCopy()
		if object, err = keptAway(run)(seen); err != nil || !cmp.Equal(object, any(once)) {
			t.Errorf("%s: a second transform changed the DaemonSet again (%v):\n%s", name, err, cmp.Diff(any(once), object))
		}
		fits := nodeaffinity.NewRequiredNodeAffinity(nil, seen.Spec.Template.Spec.Affinity)
		for n, want := range map[*corev1.Node]bool{local: test.local, simulated: test.simulated, foreign: test.foreign} {
			if got, err := fits.Match(n); err != nil || got != want {
				t.Errorf("%s: %v fits: %t (%v)", name, n.Labels, got, err)
			}
		}
		if len(seen.ManagedFields) > 0 {
			t.Errorf("%s: the transform did not drop managedFields", name)
		}
	}
}
