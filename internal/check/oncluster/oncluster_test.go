package oncluster

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// silent ignores progress, except for notes.
type silent struct{ notes []string }

func (*silent) Phase(string)             {}
func (s *silent) Note(text string)       { s.notes = append(s.notes, text) }
func (*silent) Planned(*Plan)            {}
func (*silent) Ended(int, *Part, string) {}

// cluster returns a client of a cluster in which everything is allowed except for the given permissions.
func cluster(denied ...string) *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return isDry(action), nil, nil
	})
	client.PrependReactor("create", "selfsubjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
		review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview) //nolint:forcetypeassert // the resource has this type
		asked := review.Spec.ResourceAttributes
		review.Status.Allowed = !slices.Contains(denied, asked.Verb+" "+asked.Resource)
		return true, review, nil
	})
	return client
}

// isDry reports whether an object is only created to ask whether it would be allowed. The fake client would create it.
func isDry(action clienttesting.Action) bool {
	create, ok := action.(clienttesting.CreateActionImpl)
	return ok && slices.Contains(create.CreateOptions.DryRun, metav1.DryRunAll)
}

func options(client *fake.Clientset) Options {
	return Options{
		Client: client, Namespace: "here", Image: "check:v1", Shards: 2, CPU: resource.MustParse("500m"), Memory: resource.MustParse("1Gi"), Observer: &silent{},
	}
}

// refuse makes the cluster refuse to create a resource.
func refuse(client *fake.Clientset, resource string, err error) {
	client.PrependReactor("create", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

func TestARefusalNamesTheNextActionAndLeavesNothing(t *testing.T) {
	forbidden := func(resource, why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "name", errors.New(why))
	}
	for name, c := range map[string]struct {
		denied   string
		resource string
		err      error
		want     []string
	}{
		"no permission": {"create jobs", "", nil, []string{"in namespace here you may not create jobs.batch", "--namespace"}},
		"a quota":       {"", "pods", forbidden("pods", "exceeded quota: small, requested: requests.cpu=500m, used: requests.cpu=0, limited: requests.cpu=100m"), []string{"exceeded quota: small", "--shard-cpu"}},
		"Pod Security":  {"", "pods", forbidden("pods", `violates PodSecurity "restricted:latest"`), []string{"violates PodSecurity", "--namespace"}},
		"escalation":    {"", "roles", forbidden("roles", "attempting to grant RBAC permissions not currently held"), []string{"not currently held", "create configmaps"}},
		"no namespace":  {"", "serviceaccounts", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "here"), []string{"kubectl create namespace here"}},
	} {
		t.Run(name, func(t *testing.T) {
			client := cluster(c.denied)
			if c.resource != "" {
				refuse(client, c.resource, c.err)
			}
			_, err := Run(t.Context(), options(client))
			if err == nil {
				t.Fatal("the check was not refused")
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not mention %q", err, want)
				}
			}
			for _, action := range client.Actions() {
				if action.GetVerb() == "create" && action.GetResource().Group != "authorization.k8s.io" && !isDry(action) {
					t.Errorf("%s was created", action.GetResource().Resource)
				}
			}
		})
	}
}

func TestACheckThatFailsOnTheWayIsDeleted(t *testing.T) {
	client := cluster()
	client.PrependReactor("create", "rolebindings", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return !isDry(action), nil, errors.New("the binding is refused")
	})
	if _, err := Run(t.Context(), options(client)); err == nil || !strings.Contains(err.Error(), "the binding is refused") {
		t.Fatalf("%v", err)
	}
	deleted := slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.Matches("delete", "jobs") })
	if !deleted {
		t.Error("the Job that owns everything was not deleted")
	}
}

func TestAnInterruptedCheckIsDeleted(t *testing.T) {
	client := cluster()
	ctx, interrupt := context.WithCancel(t.Context())
	client.PrependReactor("get", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) {
		interrupt()
		return true, &batchv1.Job{}, nil
	})
	if _, err := Run(ctx, options(client)); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	if !slices.ContainsFunc(client.Actions(), func(a clienttesting.Action) bool { return a.Matches("delete", "jobs") }) {
		t.Error("the Job that owns everything was not deleted")
	}
}

func TestEndedIndexesAreThoseThatSucceededOrFailed(t *testing.T) {
	for completed, c := range map[string]struct {
		failed string
		want   []int
	}{
		"":        {"", nil},
		"0,2-4":   {"", []int{0, 2, 3, 4}},
		"1":       {"3", []int{1, 3}},
		"10-11,0": {"", []int{0, 10, 11}},
	} {
		job := &batchv1.Job{Status: batchv1.JobStatus{CompletedIndexes: completed, FailedIndexes: ptr.To(c.failed)}}
		if got := endedIndexes(job, 12); !slices.Equal(got, c.want) {
			t.Errorf("%q and %q: %v, want %v", completed, c.failed, got, c.want)
		}
	}
	over := &batchv1.Job{Status: batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}}}
	if got := endedIndexes(over, 2); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("after the Job failed: %v", got)
	}
}

func TestLostPodsDoNotCountAsFailures(t *testing.T) {
	r := &run{Options: options(nil), name: "koboshi-check-1"}
	spec := r.shardJob().Spec
	if !ptr.Deref(spec.Suspend, false) || *spec.Completions != 2 || *spec.CompletionMode != batchv1.IndexedCompletion {
		t.Errorf("%+v", spec)
	}
	var ignored []string
	for _, rule := range spec.PodFailurePolicy.Rules {
		if rule.Action != batchv1.PodFailurePolicyActionIgnore {
			continue
		}
		for _, c := range rule.OnPodConditions {
			ignored = append(ignored, string(c.Type))
		}
		if rule.OnExitCodes != nil && slices.Equal(rule.OnExitCodes.Values, []int32{143}) {
			ignored = append(ignored, "SIGTERM")
		}
	}
	if want := []string{"DisruptionTarget", "SIGTERM"}; !slices.Equal(ignored, want) {
		t.Errorf("ignored are %v, want %v", ignored, want)
	}
}

func TestPodsMayOnlyCreateConfigMaps(t *testing.T) {
	r := &run{Options: options(nil), name: "koboshi-check-1"}
	rules := r.role().Rules
	if len(rules) != 1 || !slices.Equal(rules[0].Resources, []string{"configmaps"}) || !slices.Equal(rules[0].Verbs, []string{"create"}) {
		t.Errorf("%v", rules)
	}
}

func TestWhatAPodWaitsForIsNoted(t *testing.T) {
	waiting := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "m"}}}}}
	}
	for want, status := range map[string]corev1.PodStatus{
		"":                       waiting("ContainerCreating"),
		"ErrImagePull: m":        waiting("ErrImagePull"),
		"no node has room: 0/1 ": {Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 "}}},
	} {
		if got := waitsFor(&corev1.Pod{Status: status}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestALostPodAndAFailedOneAreNoted(t *testing.T) {
	o := &silent{}
	client := fake.NewClientset()
	p := newPods(&run{Options: Options{Client: client, Namespace: "here", Observer: o}}, "job", 4)
	pod := func(name string, status corev1.PodStatus) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: name, Labels: map[string]string{
			batchv1.JobNameLabel: "job", batchv1.JobCompletionIndexAnnotation: strconv.Itoa(int(name[0] - 'a')),
		}}, Status: status}
	}
	exited := func(code int32) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: "first line\npanic: out of memory\n\ngoroutine 1"},
		}}}}
	}
	for _, pod := range []*corev1.Pod{
		pod("a", corev1.PodStatus{Phase: corev1.PodRunning}), pod("b", exited(137)), pod("c", exited(CouldNot)), pod("d", corev1.PodStatus{Phase: corev1.PodSucceeded}),
	} {
		if err := client.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	look := func() {
		if err := p.look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	look()
	for _, name := range []string{"a", "d"} {
		if err := client.CoreV1().Pods("here").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	look()
	want := []string{"Pod b ended with exit code 137: panic: out of memory", "Pod a was deleted; another one repeats its part"}
	if !slices.Equal(o.notes, want) {
		t.Errorf("%q, want %q", o.notes, want)
	}
	if why := p.failure(1); !strings.Contains(why, "Pod b ended with exit code 137") {
		t.Errorf("the reason does not say how the last Pod failed: %s", why)
	}
}

// A Go program ends with 2 after a panic, and, as process 1, after a SIGTERM that it does not handle yet.
func TestAPodThatEndsWithTheExitCodeOfTheGoRuntimeIsRepeated(t *testing.T) {
	r := &run{Options: options(nil), name: "koboshi-check-1"}
	for _, rule := range r.shardJob().Spec.PodFailurePolicy.Rules {
		if rule.OnExitCodes != nil && slices.Contains(rule.OnExitCodes.Values, 2) {
			t.Errorf("%+v", rule)
		}
	}
}
