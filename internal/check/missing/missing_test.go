package missing_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/missing"
	"github.com/koboshi-dev/koboshi/internal/check/state"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// asked returns the entry of a request of the controller.
func asked(verb string, code int, target trace.Target, message string) trace.Entry {
	return trace.Entry{Instance: "controller-1", Call: &trace.Call{Verb: verb, Code: code, Target: target, Message: message}}
}

func discovered(path string, code int) trace.Entry {
	return trace.Entry{Instance: "controller-1", Call: &trace.Call{Verb: "get", Code: code, Path: path}}
}

func secret(name string) trace.Target {
	return trace.Target{Version: "v1", Resource: "secrets", Namespace: "sea", Name: name}
}

const notServed = "the server could not find the requested resource"

func TestWhatAControllerDidNotFindIsNamed(t *testing.T) {
	certificates := trace.Target{Group: "cert-manager.io", Version: "v1", Resource: "certificates"}
	own := trace.Target{Group: "sea.example.com", Version: "v1", Resource: "ships", Namespace: "sea", Name: "a"}
	byChecker := asked("get", 404, secret("checker"), "")
	byChecker.Instance = ""
	injected := asked("list", 404, trace.Target{Group: "keda.sh", Resource: "scaledobjects"}, notServed)
	injected.Call.Injected = true
	for _, c := range []struct {
		name    string
		entries []trace.Entry
		logs    string
		want    []string
	}{
		{"a list", []trace.Entry{asked("list", 404, certificates, ""), asked("watch", 404, certificates, "")}, "",
			[]string{"the controller asked for certificates.cert-manager.io, which the cluster does not serve; it belongs to cert-manager (use --with-crds FILE to add its CRDs)"}},
		{"a create", []trace.Entry{asked("create", 404, trace.Target{Group: "unknown.example.com", Resource: "things"}, notServed)}, "",
			[]string{"the controller asked for things.unknown.example.com, which the cluster does not serve (use --with-crds FILE to add its CRDs)"}},
		{"discovery", []trace.Entry{discovered("/apis/monitoring.coreos.com/v1?timeout=32s", 404), discovered("/apis/policy/v1beta1", 404), discovered("/apis/keda.sh/v1alpha1", 200)}, "",
			[]string{"the controller asked for monitoring.coreos.com, which the cluster does not serve; it belongs to the Prometheus Operator (use --with-crds FILE to add its CRDs)"}},
		{"its output", nil, `error: no matches for kind "VirtualService" in version "networking.istio.io/v1"` + "\n" + `{"error":"no matches for kind \"Ingress\" in version \"networking.k8s.io/v1beta1\""}`,
			[]string{"the controller asked for VirtualService.networking.istio.io, which the cluster does not serve; it belongs to Istio (use --with-crds FILE to add its CRDs)"}},
		{"a Secret", []trace.Entry{asked("get", 404, secret("db"), "")}, "",
			[]string{"the controller asked for the Secret sea/db, which does not exist (use --given FILE to add it, or --stub-secret sea/db=KEY,... to make one up)"}},
		{"a ConfigMap", []trace.Entry{asked("get", 404, trace.Target{Resource: "configmaps", Namespace: "sea", Name: "db"}, "")}, "",
			[]string{"the controller asked for the ConfigMap sea/db, which does not exist (use --given FILE to add it, or --stub-configmap sea/db=KEY,... to make one up)"}},
		{"a command in a Pod", []trace.Entry{asked("create", 501, trace.Target{Version: "v1", Resource: "pods", Subresource: "exec", Namespace: "sea", Name: "a"}, "")}, "",
			[]string{"the controller uses pods/exec, which fails because the Pods of a check are simulated, so its work after that is not checked (define answers in koboshi.yaml or in a scenario, under pods, or let the Pods run a program with --run)"}},
		{"its own objects", []trace.Entry{
			asked("get", 404, own, `ships.sea.example.com "a" not found`), asked("get", 404, secret("child"), ""), asked("create", 201, secret("child"), ""),
			asked("get", 404, secret("given"), ""), asked("get", 200, secret("given"), ""), asked("get", 403, secret("forbidden"), ""), byChecker, injected,
		}, "", nil},
	} {
		if diff := cmp.Diff(c.want, missing.Find(&evidence.Run{Entries: c.entries, Logs: c.logs})); diff != "" {
			t.Errorf("%s: -want +got:\n%s", c.name, diff)
		}
	}
}

func TestWhatAControllerMakesInAnyRunIsNotMissing(t *testing.T) {
	first := &evidence.Run{Entries: []trace.Entry{asked("get", 404, secret("target"), ""), asked("get", 404, secret("db"), "")}}
	second := &evidence.Run{Entries: []trace.Entry{asked("get", 404, secret("target"), ""), asked("create", 201, secret("target"), "")}}
	db := []string{"the controller asked for the Secret sea/db, which does not exist (use --given FILE to add it, or --stub-secret sea/db=KEY,... to make one up)"}
	if diff := cmp.Diff(db, missing.Find(first, second)); diff != "" {
		t.Errorf("of two runs: -want +got:\n%s", diff)
	}
	if own := missing.Own(second); len(own) != 1 || !slices.Contains(missing.Find(first), own[0]) {
		t.Errorf("a run in which the controller makes the Secret does not refute the hint of another scenario: %q", own)
	}
}

func TestWhatAResourceNamesAsItsOutputIsNotMissing(t *testing.T) {
	for spec, want := range map[string]int{
		`{"target":{"name":"db"}}`:                     0,
		`{"writeConnectionSecretToRef":{"name":"db"}}`: 0,
		`{"passwordSecretRef":{"name":"db"}}`:          1,
		`{"target":{"name":"dbs"}}`:                    1,
	} {
		ship := state.Object{}
		if err := json.Unmarshal([]byte(`{"spec":`+spec+`}`), &ship); err != nil {
			t.Fatal(err)
		}
		run := &evidence.Run{Entries: []trace.Entry{asked("get", 404, secret("db"), "")}}
		run.History.Changes = []state.Change{{Op: state.Created, Ref: state.Ref{GroupKind: schema.GroupKind{Group: "sea.example.com", Kind: "Ship"}, Namespace: "sea", Name: "a"}, After: ship}}
		if got := missing.Find(run); len(got) != want {
			t.Errorf("%s: %q", spec, got)
		}
	}
}

func TestAnErrorIsExplainedByWhatIsMissing(t *testing.T) {
	gone := errors.New("the controller exited")
	run := &evidence.Run{Entries: []trace.Entry{{Instance: "controller-1", Process: &trace.Process{
		What: "exited", Output: `no matches for kind "Gateway" in version "gateway.networking.k8s.io/v1"`,
	}}}}
	_, err := missing.Explain(run, gone)
	if !errors.Is(err, gone) || !strings.Contains(err.Error(), "the Gateway API (use --with-crds FILE") {
		t.Errorf("the error is: %v", err)
	}
	if _, err := missing.Explain(run, nil); err != nil {
		t.Errorf("a run without an error has the error: %v", err)
	}
	if _, err := missing.Explain(&evidence.Run{}, gone); err != gone {
		t.Errorf("the error is: %v", err)
	}
}
