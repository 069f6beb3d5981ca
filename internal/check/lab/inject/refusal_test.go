package inject

import (
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/check/lab/interference"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// write returns a write to a ConfigMap.
func write(verb, namespace, name string) *trace.Call {
	t := trace.Target{Version: "v1", Resource: "configmaps", Namespace: namespace, Name: name}
	body := fmt.Sprintf(`{"metadata":{"namespace":%q,"name":%q}}`, namespace, name)
	return &trace.Call{Verb: verb, Target: t, ContentType: "application/json", Request: json.RawMessage(body)}
}

// refusing returns a fault at the first write of ConfigMap d/a with the verb, which has not come yet.
func refusing(kind fault.Kind, verb string) *Injection {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	config := schema.GroupKind{Kind: "ConfigMap"}
	i := New(Config{
		Fault: fault.Fault{Kind: kind, Point: fault.Point{Step: "s", Verb: verb, Resource: "configmaps", Object: "d/a", Occurrence: 1}},
		Log:   trace.NewLog(time.Now()), User: "system:serviceaccount:system:manager",
		Cluster: interference.Client{Mapper: mapper},
		Store: snapshot{
			{GroupKind: config, Namespace: "d", Name: "x"}:              {},
			{GroupKind: config, Namespace: "d", Name: "y"}:              {},
			{GroupKind: config, Namespace: "other", Name: "z"}:          {},
			{GroupKind: schema.GroupKind{Kind: "Secret"}, Name: "kept"}: {},
		},
	})
	i.Enter("s")
	return i
}

// outcomes returns the errors with which the writes are refused, and "" for those that are forwarded.
func outcomes(t *testing.T, i *Injection, calls ...*trace.Call) (all []string) {
	t.Helper()
	for _, call := range calls {
		a := i.Decide(call)
		if a.Answer == nil {
			all = append(all, "")
			continue
		}
		if err := (&apierrors.StatusError{ErrStatus: *a.Answer}); !apierrors.IsForbidden(err) || a.Answer.Code != 403 || a.Answer.Details.Kind != "configmaps" {
			t.Errorf("the answer to %s is %+v", call.Verb, a.Answer)
		}
		all = append(all, a.Answer.Message)
	}
	return all
}

func expectAll(t *testing.T, got []string, want ...string) {
	t.Helper()
	for n := range want {
		if got[n] != want[n] {
			t.Errorf("request %d: %q, want %q", n, got[n], want[n])
		}
	}
}

func TestAQuotaRefusesAllCreationsOfTheTypeInTheNamespaceUntilRest(t *testing.T) {
	const exceeded = "exceeded quota: object-counts, requested: count/configmaps=1, used: count/configmaps=2, limited: count/configmaps=2"
	i := refusing(fault.Forbid, "create")
	secret := write("create", "d", "s")
	secret.Target.Resource = "secrets"
	generated := write("create", "d", "")
	generated.Request = json.RawMessage(`{"metadata":{"generateName":"run-"}}`)
	expectAll(t, outcomes(t, i, write("create", "d", "before"), write("create", "d", "a"), write("create", "d", "a"), write("create", "d", "b"), generated,
		write("update", "d", "a"), write("patch", "d", "a"), write("create", "other", "a"), secret),
		"",
		`configmaps "a" is forbidden: `+exceeded, `configmaps "a" is forbidden: `+exceeded,
		`configmaps "b" is forbidden: `+exceeded, `configmaps "run-" is forbidden: `+exceeded,
		"", "", "", "")
	if !i.HoldsUntilRest() || !i.Release("s") {
		t.Error("the refusal does not end at rest")
	}
	expectAll(t, outcomes(t, i, write("create", "d", "a"), write("create", "d", "b")), "", "")
}

func TestAQuotaRefusesEachApplyThatWouldCreateAnObject(t *testing.T) {
	i := refusing(fault.Forbid, "patch")
	apply := func(name string) *trace.Call {
		call := write("patch", "d", name)
		call.ContentType = "application/apply-patch+yaml"
		return call
	}
	got := outcomes(t, i, apply("a"), apply("a"), apply("x"), write("create", "d", "b"), apply("b"))
	if got[0] == "" || got[1] == "" || got[2] != "" || got[3] == "" || got[4] == "" {
		t.Errorf("the answers are %q", got)
	}
}

func TestARevokedPermissionIsMissingForAllObjectsUntilHealingBegins(t *testing.T) {
	i := refusing(fault.Revoke, "update")
	status := write("update", "d", "a")
	status.Target.Subresource = "status"
	expectAll(t, outcomes(t, i, write("update", "d", "a"), write("update", "other", "b"), write("patch", "d", "a"), status),
		`configmaps "a" is forbidden: User "system:serviceaccount:system:manager" cannot update resource "configmaps" in API group "" in the namespace "d"`,
		`configmaps "b" is forbidden: User "system:serviceaccount:system:manager" cannot update resource "configmaps" in API group "" in the namespace "other"`,
		"", "")
	i.End()
	expectAll(t, outcomes(t, i, write("update", "d", "a")), "")
}

func TestARefusalEndsEvenIfTheStepIsNeverAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := refusing(fault.Revoke, "update")
		<-time.After(time.Second)
		if got := outcomes(t, i, write("update", "d", "a")); got[0] == "" {
			t.Fatal("the write is not refused")
		}
		<-time.After(fault.RefusalLasts - time.Millisecond)
		if got := outcomes(t, i, write("update", "d", "a")); got[0] == "" {
			t.Error("the refusal has ended early")
		}
		<-time.After(2 * time.Millisecond)
		if got := outcomes(t, i, write("update", "d", "a")); got[0] != "" {
			t.Errorf("after %s, a write is refused: %s", fault.RefusalLasts, got[0])
		}
	})
}

func TestARefusalThatBeginsAfterTheLastRestOfAStepEndsWithTheStep(t *testing.T) {
	i := refusing(fault.Revoke, "update")
	i.Release("s") // the step is at rest
	if got := outcomes(t, i, write("update", "d", "a")); got[0] == "" {
		t.Fatal("the write is not refused")
	}
	i.Enter("next")
	expectAll(t, outcomes(t, i, write("update", "d", "a")), "")
	if i.Holds() {
		t.Error("the fault still holds something back, so the next step is not judged")
	}
	if n := ends(i); n != 1 {
		t.Errorf("the end is noted %d times", n)
	}
}

// ends returns how often the end of a fault is noted.
func ends(i *Injection) (n int) {
	for _, e := range i.config.Log.Entries() {
		if e.Fault != nil && e.Fault.What == "ended" {
			n++
		}
	}
	return n
}

func TestTheNextStepDoesNotEndWhatIsHeldBackUntilIt(t *testing.T) {
	i := New(Config{})
	i.Enter("create")
	i.keep("change", func() { t.Error("released") })
	i.Enter("change")
	if !i.HoldsUntilRest() {
		t.Error("nothing is held back")
	}
}

func TestTheAuthorizerKnowsOnlyTheURL(t *testing.T) {
	i := refusing(fault.Revoke, "create")
	expectAll(t, outcomes(t, i, write("create", "d", "a")),
		`configmaps is forbidden: User "system:serviceaccount:system:manager" cannot create resource "configmaps" in API group "" in the namespace "d"`)
	roles := trace.Target{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles", Subresource: "status", Name: "r"}
	call := &trace.Call{Verb: "update", Target: roles}
	want := `clusterroles.rbac.authorization.k8s.io "r" is forbidden: User "system:serviceaccount:system:manager" cannot update resource "clusterroles/status" in API group "rbac.authorization.k8s.io" at the cluster scope`
	if got := revoked(i, call).answer(call).Answer.Message; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
