package request

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/trace"
)

func call(verb, group, resource, body string) *trace.Call {
	c := &trace.Call{Verb: verb, Target: trace.Target{Group: group, Resource: resource, Namespace: "a", Name: "b"}}
	if body != "" {
		c.Request = json.RawMessage(body)
	}
	return c
}

const leader = `{"metadata":{"annotations":{"control-plane.alpha.kubernetes.io/leader":"{}"}}}`

func TestBookkeepingIsNoWorkAndACustomResourceOfThatNameIs(t *testing.T) {
	work := map[bool][]*trace.Call{
		true: {
			call("create", "apps", "deployments", ""),
			call("deletecollection", "", "secrets", ""),
			call("update", "example.com", "leases", ""),
			call("update", "example.com", "events", ""),
			call("create", "example.com", "tokenreviews", ""),
			call("patch", "", "nodes", ""),
			call("patch", "example.com", "nodes", ""),
			call("create", "", "configmaps", `{"metadata":{"name":"a"}}`),
			call("update", "example.com", "configmaps", leader),
		},
		false: {
			call("get", "apps", "deployments", ""),
			call("create", "", "", ""),
			call("create", "", "events", ""),
			call("patch", "events.k8s.io", "events", ""),
			call("update", "coordination.k8s.io", "leases", ""),
			call("create", "authentication.k8s.io", "tokenreviews", ""),
			call("create", "authentication.k8s.io", "selfsubjectreviews", ""),
			call("create", "authorization.k8s.io", "subjectaccessreviews", ""),
			call("create", "authorization.k8s.io", "localsubjectaccessreviews", ""),
			call("create", "authorization.k8s.io", "selfsubjectaccessreviews", ""),
			call("create", "authorization.k8s.io", "selfsubjectrulesreviews", ""),
			call("update", "", "configmaps", leader),
			call("update", "", "endpoints", leader),
			{Verb: "create", Target: trace.Target{Resource: "serviceaccounts", Subresource: "token", Name: "a"}},
			{Verb: "put", Endpoint: "s3", Path: "/bucket"},
		},
	}
	for want, calls := range work {
		for _, c := range calls {
			if got := IsWork(c); got != want {
				t.Errorf("IsWork(%s %s.%s) = %t", c.Verb, c.Target.Resource, c.Target.Group, got)
			}
		}
	}
}

func TestTheAnswerToAPatchCanShowThatItIsAnElection(t *testing.T) {
	c := call("patch", "", "configmaps", `{"data":{}}`)
	c.Response = json.RawMessage(leader)
	if !IsBookkeeping(c) {
		t.Error("it counts as work")
	}
}

func TestOnlyAWriteThatSaysAllIsADryRun(t *testing.T) {
	for path, want := range map[string]bool{
		"/api/v1/namespaces/a/pods/b?dryRun=All":                 true,
		"/api/v1/namespaces/a/pods/b?force=true&dryRun=%41ll":    true,
		"/api/v1/namespaces/a/pods/b":                            false,
		"/api/v1/namespaces/a/pods/b?dryRun=":                    false,
		"/api/v1/namespaces/a/pods/b?labelSelector=dryRun%3DAll": false,
		"/api/v1/namespaces/a/pods/dryRun=All":                   false,
	} {
		for _, verb := range []string{"create", "update", "patch", "delete"} {
			c := call(verb, "", "pods", "")
			c.Path = path
			if got := IsDryRun(c); got != want {
				t.Errorf("IsDryRun(%s %s) = %t", verb, path, got)
			}
		}
	}
	if !IsDryRun(call("delete", "", "pods", `{"kind":"DeleteOptions","dryRun":["All"]}`)) {
		t.Error("the options of a deletion are not looked at")
	}
	if IsDryRun(call("create", "example.com", "things", `{"dryRun":["All"]}`)) {
		t.Error("an object with a field dryRun is taken for the options of a deletion")
	}
}

func TestABookkeepingObjectIsKnownByItsGroup(t *testing.T) {
	kind := schema.ParseGroupKind
	for name, want := range map[string]bool{
		"Event": true, "Event.events.k8s.io": true, "Lease.coordination.k8s.io": true,
		"LeaseCandidate.coordination.k8s.io": true, "Node": true,
		"Event.example.com": false, "Lease.example.com": false, "Node.example.com": false, "Node.longhorn.io": false,
		"Pod": false, "ConfigMap": false, "Endpoints": false,
	} {
		if got := IsBookkeepingObject(kind(name), nil); got != want {
			t.Errorf("IsBookkeepingObject(%s) = %t", name, got)
		}
	}
	var record map[string]any
	if err := json.Unmarshal([]byte(leader), &record); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"ConfigMap": true, "Endpoints": true, "Pod": false, "ConfigMap.example.com": false} {
		if got := IsBookkeepingObject(kind(name), record); got != want {
			t.Errorf("IsBookkeepingObject(%s with a leader) = %t", name, got)
		}
	}
	if !IsLeaseKind(kind("Lease.coordination.k8s.io")) || IsLeaseKind(kind("Lease.example.com")) {
		t.Error("a Lease is not known by its group")
	}
	if !IsDerived(kind("EndpointSlice.discovery.k8s.io")) || IsDerived(kind("EndpointSlice.example.com")) {
		t.Error("an EndpointSlice is not known by its group")
	}
}

func TestElectionRecordHoldsTheSpecOfALease(t *testing.T) {
	object := func(text string) map[string]any {
		record := `{"holderIdentity":"a","leaseDurationSeconds":7,"renewTime":"2026-01-01T00:00:00Z"}`
		return map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{LeaderAnnotation: strings.Replace(text, "RECORD", record, 1)}},
			"spec":     map[string]any{"holderIdentity": "b"},
		}
	}
	for _, test := range []struct {
		kind, record string
		holder       any
		ok           bool
	}{
		{"ConfigMap", "RECORD", "a", true},
		{"Endpoints", "RECORD", "a", true},
		{"ConfigMap", "{", nil, true},
		{"Lease.coordination.k8s.io", "", "b", true},
		{"Pod", "RECORD", nil, false},
		{"ConfigMap.example.com", "RECORD", nil, false},
	} {
		spec, ok := LeaseSpec(schema.ParseGroupKind(test.kind), object(test.record))
		if ok != test.ok || spec["holderIdentity"] != test.holder {
			t.Errorf("%s %s: %v, %v", test.kind, test.record, spec, ok)
		}
		if test.holder == "a" && spec["leaseDurationSeconds"] != int64(7) {
			t.Errorf("%s: the duration is %#v", test.kind, spec["leaseDurationSeconds"])
		}
	}
	if _, ok := LeaseSpec(schema.GroupKind{Kind: "ConfigMap"}, map[string]any{}); ok {
		t.Error("a plain ConfigMap is mistaken for a record")
	}
}

func TestALeaseIsKnownByItsGroup(t *testing.T) {
	if !IsLease(trace.Target{Group: "coordination.k8s.io", Resource: "leases"}) || IsLease(trace.Target{Group: "example.com", Resource: "leases"}) {
		t.Error("leases.example.com is taken for a Lease, or a Lease for none")
	}
}

func TestAWriteToAnEndpointIsAWrite(t *testing.T) {
	for verb, want := range map[string]bool{"put": true, "post": true, "delete": true, "get": false, "head": false, "options": false} {
		if got := IsWrite(&trace.Call{Verb: verb, Endpoint: "s3"}); got != want {
			t.Errorf("IsWrite(%s at an endpoint) = %t", verb, got)
		}
	}
}

func TestAMethodIsNamedAsHTTPNamesIt(t *testing.T) {
	for verb, want := range map[string]string{
		"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE all",
		"get": "GET", "list": "LIST", "watch": "WATCH", "head": "HEAD",
	} {
		if got := Method(verb); got != want {
			t.Errorf("Method(%s) = %s, want %s", verb, got, want)
		}
	}
}

func TestAnElectionIsALeaseOrTheRecordInAnotherObject(t *testing.T) {
	for want, calls := range map[bool][]*trace.Call{
		true:  {call("update", "coordination.k8s.io", "leases", ""), call("update", "", "configmaps", leader), call("create", "", "endpoints", leader)},
		false: {call("update", "example.com", "leases", ""), call("update", "", "configmaps", `{"metadata":{}}`), call("update", "", "secrets", leader)},
	} {
		for _, c := range calls {
			if IsElection(c) != want {
				t.Errorf("%s %s.%s counts as an election: %t", c.Verb, c.Target.Resource, c.Target.Group, !want)
			}
		}
	}
}
