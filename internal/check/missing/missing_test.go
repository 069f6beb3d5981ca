package missing_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/evidence"
	"github.com/koboshi-dev/koboshi/internal/check/missing"
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
			[]string{"the controller uses pods/exec, which fails because the Pods of a check are simulated, so its work after that is not checked (define answers in koboshi.yaml or in a scenario, under pods)"}},
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
