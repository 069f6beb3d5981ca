package scenario

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

var podRef = ObjectRef{APIVersion: "v1", Kind: "Pod", Name: "a"}

// pretend returns a cluster whose fake client holds the objects.
func pretend(objects ...runtime.Object) Cluster {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	return Cluster{Client: fake.NewSimpleDynamicClient(runtime.NewScheme(), objects...), Mapper: mapper}
}

func pod(extra map[string]any) *unstructured.Unstructured {
	o := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a", "namespace": "default"}}
	for key, value := range extra {
		o[key] = value
	}
	return &unstructured.Unstructured{Object: o}
}

func TestAnExpectationThatDoesNotHoldSaysWhatIsThere(t *testing.T) {
	status := map[string]any{"status": map[string]any{
		"ready":      int64(1),
		"names":      []any{"x", "y"},
		"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "Down", "message": "no answer"}},
		"url":        "http://127.0.0.1:1/a",
	}}
	tests := map[string]struct {
		condition Condition
		want      string
	}{
		"there":             {Condition{}, ""},
		"not absent":        {Condition{Absent: true}, "Pod a exists, and its deletion was not requested"},
		"absent":            {Condition{ObjectRef: ObjectRef{"v1", "Pod", "", "b"}, Absent: true}, ""},
		"not there":         {Condition{ObjectRef: ObjectRef{"v1", "Pod", "other", "b"}}, "Pod other/b does not exist"},
		"status":            {Condition{Status: "Ready=False"}, ""},
		"other status":      {Condition{Status: "Ready"}, "Pod a: condition Ready is False, not True (Down: no answer)"},
		"no such condition": {Condition{Status: "Happy"}, "Pod a: there is no condition Happy"},
		"field":             {Condition{Field: "status.ready", Equals: []byte("1")}, ""},
		"field with dollar": {Condition{Field: "$.status.ready", Equals: []byte("1")}, ""},
		"other value":       {Condition{Field: "status.ready", Equals: []byte("2")}, "Pod a: status.ready is 1, not 2"},
		"field is there":    {Condition{Field: ".status.ready"}, ""},
		"field is missing":  {Condition{Field: "status.x"}, "Pod a: status.x is missing"},
		"value is missing":  {Condition{Field: "status.x", Equals: []byte("2")}, "Pod a: status.x is missing; want 2"},
		"list":              {Condition{Field: "status.names", Equals: []byte(`["x","y"]`)}, ""},
		"items":             {Condition{Field: "status.names[*]", Equals: []byte(`["x","y"]`)}, ""},
		"other items":       {Condition{Field: "status.names[*]", Equals: []byte(`["x"]`)}, `Pod a: status.names[*] is ["x","y"], not ["x"]`},
		"filter":            {Condition{Field: `status.conditions[?(@.type=="Ready")].reason`, Equals: []byte(`"Down"`)}, ""},
		"no items":          {Condition{Field: `status.conditions[?(@.type=="X")].reason`, Equals: []byte(`[]`)}, ""},
		"endpoint":          {Condition{Field: "status.url", Equals: []byte(`"$(endpoint.store)/a"`)}, ""},
		"unknown kind":      {Condition{ObjectRef: ObjectRef{"v1", "Pdo", "", "b"}}, `Pdo b: no matches for kind "Pdo" in version "v1"`},
	}
	c := pretend(pod(status))
	c.Endpoints = map[string]string{"store": "http://127.0.0.1:1"}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.condition.Kind == "" {
				test.condition.ObjectRef = podRef
			}
			step := Step{Expect: []Condition{test.condition}}
			if got := strings.Join(step.Check(t.Context(), c), "\n"); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestAwaitSaysWhatItWaitedForAndWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pretend(pod(map[string]any{"status": map[string]any{"ready": int64(1)}}))
		step := Step{Name: "grow", Wait: []Condition{{ObjectRef: podRef, Field: "status.ready", Equals: []byte("2"), Timeout: Duration(30 * time.Millisecond)}}}
		err := step.Await(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), `step "grow": waited `) || !strings.Contains(err.Error(), "for Pod a to have status.ready = 2: Pod a: status.ready is 1, not 2") {
			t.Errorf("got %v", err)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is not a DeadlineExceeded", err)
		}
	})
}

func TestAwaitWaitsForAllAtOnce(t *testing.T) {
	// The first condition holds for the old status, and the second for the new one.
	seen := []map[string]any{{"phase": "Done", "ran": "old"}, {"phase": "Running", "ran": "new"}, {"phase": "Running", "ran": "new"}, {"phase": "Done", "ran": "new"}}
	client := fake.NewSimpleDynamicClient(runtime.NewScheme())
	looks := 0
	client.PrependReactor("get", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		now := seen[min(looks, len(seen)-1)]
		looks++
		return true, pod(map[string]any{"status": now}), nil
	})
	c := pretend()
	c.Client = client
	step := Step{Name: "run", Wait: []Condition{
		{ObjectRef: podRef, Field: "status.phase", Equals: []byte(`"Done"`)},
		{ObjectRef: podRef, Field: "status.ran", Equals: []byte(`"new"`)},
	}}
	if err := step.Await(t.Context(), c); err != nil || looks <= len(seen) {
		t.Errorf("Await stopped after %d reads, before both conditions held: %v", looks, err)
	}
}

func TestAwaitOfADeletionNamesTheFinalizerInItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := pod(nil)
		held.SetFinalizers([]string{"example.com/hold"})
		now := metaNow()
		held.SetDeletionTimestamp(&now)
		step := Step{Name: "end", Delete: &Delete{ObjectRef: podRef}}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		err := step.Await(ctx, pretend(held))
		if err == nil || !strings.Contains(err.Error(), "Pod a is being deleted, but still has the finalizers example.com/hold") {
			t.Errorf("got %v", err)
		}
		step.Delete.Keep = true
		if err := step.Await(t.Context(), pretend(held)); err != nil {
			t.Errorf("with keep: %v", err)
		}
	})
}

func TestDeletingWhatIsNotThereIsAMistakeOfTheScenario(t *testing.T) {
	step := Step{Name: "end", Delete: &Delete{ObjectRef: podRef}}
	if err := step.Do(t.Context(), pretend()); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
	c := pretend(pod(nil))
	if err := errors.Join(step.Do(t.Context(), c), step.Await(t.Context(), c)); err != nil {
		t.Error(err)
	}
}

func TestOnlyWhatMayWorkLaterIsTriedAgain(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	for name, test := range map[string]struct {
		err   error
		again bool
	}{
		"conflict":             {apierrors.NewConflict(pods, "a", errors.New("changed")), true},
		"too many requests":    {apierrors.NewTooManyRequests("later", 1), true},
		"unavailable":          {apierrors.NewServiceUnavailable("starting"), true},
		"webhook not there":    {apierrors.NewInternalError(errors.New(`failed calling webhook "v.kb.io": connect: connection refused`)), true},
		"connection refused":   {&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, true},
		"other internal error": {apierrors.NewInternalError(errors.New("no idea")), false},
		"invalid":              {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), false},
		"forbidden":            {apierrors.NewForbidden(pods, "a", errors.New("webhook says no")), false},
		"not found":            {apierrors.NewNotFound(pods, "a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			err := persist(t.Context(), "apply Pod a", func() error {
				if tries++; tries == 1 {
					return test.err
				}
				return nil
			})
			if (err == nil) != test.again || (tries == 2) != test.again {
				t.Errorf("tried %d times: %v", tries, err)
			}
			if refused := Refused(test.err); refused && test.again {
				t.Error("it is both refused and tried again")
			}
		})
	}
}

func TestGivingUpSaysTheLastError(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := persist(ctx, "apply Pod a", func() error { return apierrors.NewServiceUnavailable("still starting") })
	if err == nil || !strings.HasPrefix(err.Error(), "apply Pod a: gave up after ") || !strings.Contains(err.Error(), "still starting") {
		t.Errorf("got %v", err)
	}
}

func TestACommandKnowsTheClusterAndTheEndpoints(t *testing.T) {
	t.Setenv("KUBECONFIG", "somebody's own")
	t.Setenv("HOME", "/home/somebody")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "somebody's key")
	dir := t.TempDir()
	c := Cluster{Kubeconfig: "ours", Env: []string{"STORE=http://proxy"}, Home: "/lab", Endpoints: map[string]string{"store": "http://proxy"}, Dir: dir}
	step := Step{Name: "call", Run: []string{"sh", "-c", `echo "$KUBECONFIG $STORE $(endpoint.store)" >out; env >env`}}
	if err := step.Do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "out"))
	if err != nil || string(got) != "ours http://proxy http://proxy\n" {
		t.Errorf("got %q, %v", got, err)
	}
	env, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil || strings.Contains(string(env), "somebody") || !strings.Contains(string(env), "HOME=/lab\n") {
		t.Errorf("its environment is %s, %v", env, err)
	}
}

func TestACommandThatFailsIsShownWithItsOutput(t *testing.T) {
	step := Step{Name: "call", Run: []string{"sh", "-c", "echo no bucket >&2; exit 3"}}
	err := step.Do(t.Context(), Cluster{})
	if err == nil || err.Error() != "step \"call\": sh -c 'echo no bucket >&2; exit 3': exit status 3\n  no bucket" {
		t.Errorf("got %v", err)
	}
}

func TestACommandEndsWithItsContextAndAllThatItStarted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "pid")
	done := make(chan error, 1)
	go func() {
		step := Step{Name: "call", Run: []string{"sh", "-c", "sleep 60 & echo $! >" + file + ".new; mv " + file + ".new " + file + "; wait"}}
		done <- step.Do(ctx, Cluster{})
	}()
	until(t, func() bool { _, err := os.Stat(file); return err == nil })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	until(t, func() bool { return ended(t, file) })
}

// until calls holds repeatedly until it returns true, and fails after a time that is reached only
// if something hangs.
func until(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the condition did not hold in time")
		}
	}
}

func TestTheLedgerIsSortedLines(t *testing.T) {
	s := &Scenario{Name: "a", Ledger: []string{"printf", `b\r\n\na\nc`}}
	got, err := ReadLedger(t.Context(), s, Cluster{})
	if err != nil || !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := ReadLedger(t.Context(), &Scenario{}, Cluster{}); got != nil || err != nil {
		t.Errorf("without a ledger: %q, %v", got, err)
	}
	s.Ledger = []string{"true"}
	if got, err := ReadLedger(t.Context(), s, Cluster{}); got == nil || len(got) != 0 || err != nil {
		t.Errorf("an empty ledger: %#v, %v", got, err)
	}
	s.Ledger = []string{"false"}
	if _, err := ReadLedger(t.Context(), s, Cluster{}); err == nil || err.Error() != "scenario a: ledger: false: exit status 1" {
		t.Errorf("a ledger that fails: %v", err)
	}
}

func TestEndpointsAreSubstitutedInCopies(t *testing.T) {
	c := Cluster{Endpoints: map[string]string{"s": "http://p"}}
	m := Manifest{Object: map[string]any{"a": []any{map[string]any{"b": "$(endpoint.s)/x $(endpoint.t)"}}}}
	objects, err := m.objects()
	if err != nil {
		t.Fatal(err)
	}
	got := c.substituteIn(objects[0])
	want := any(map[string]any{"a": []any{map[string]any{"b": "http://p/x $(endpoint.t)"}}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if m.Object["a"].([]any)[0].(map[string]any)["b"] != "$(endpoint.s)/x $(endpoint.t)" {
		t.Error("the manifest itself was changed")
	}
}
