package inject

import (
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/koboshi-dev/koboshi/internal/apiproxy"
	"github.com/koboshi-dev/koboshi/internal/check/fault"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// A refusal answers requests with an error until the step is at rest, or the longest time is over.
type refusal struct {
	// covers reports whether a request is refused.
	covers func(*trace.Call) bool
	answer func(*trace.Call) apiproxy.Action
}

// refuseFrom begins a refusal, and refuses the request at the fault's point.
func refuseFrom(begin func(*Injection, *trace.Call) *refusal) func(*Injection, *trace.Call) apiproxy.Action {
	return func(i *Injection, call *trace.Call) apiproxy.Action {
		r := begin(i, call)
		i.beginRefusal(r)
		return r.answer(call)
	}
}

// beginRefusal begins a refusal.
func (i *Injection) beginRefusal(r *refusal) {
	i.refusing.Store(r)
	timer := time.AfterFunc(fault.RefusalLasts, func() { i.refusing.CompareAndSwap(r, nil) })
	i.keep(i.current(), func() {
		timer.Stop()
		i.refusing.Store(nil)
	})
}

// forbidden returns a function that answers requests with 403, as an API server does whose configuration
// another client has changed. The name is that of the object in the error, and why the error that the
// server wraps.
func forbidden(name func(*trace.Call) string, why func(*trace.Call) error) func(*trace.Call) apiproxy.Action {
	return func(call *trace.Call) apiproxy.Action {
		resource := schema.GroupResource{Group: call.Target.Group, Resource: call.Target.Resource}
		status := apierrors.NewForbidden(resource, name(call), why(call)).ErrStatus
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		return apiproxy.Action{Answer: &status}
	}
}

// quotaName is the name of the simulated quota.
const quotaName = "object-counts"

// overQuota refuses to create objects of the request's type in the request's namespace, as the admission
// plugin ResourceQuota does; see k8s.io/apiserver/pkg/admission/plugin/resourcequota.
func overQuota(i *Injection, first *trace.Call) *refusal {
	counted, used := "count/"+fault.TypeOf(first.Target), i.count(first.Target)
	return &refusal{
		covers: func(call *trace.Call) bool {
			t := call.Target
			if !sameType(t, first.Target) || t.Subresource != "" || t.Namespace != first.Target.Namespace {
				return false
			}
			// An apply is counted only if it creates the object. Another patch cannot.
			return call.Verb == "create" || call.Verb == "patch" && strings.Contains(call.ContentType, "apply-patch") && !i.exists(t)
		},
		answer: forbidden(fault.NameOf, func(*trace.Call) error {
			return fmt.Errorf("exceeded quota: %s, requested: %s=1, used: %s=%d, limited: %s=%d", quotaName, counted, counted, used, counted, used)
		}),
	}
}

// count returns the number of objects of a type in a namespace.
func (i *Injection) count(t trace.Target) int { return len(i.names(t)) }

// exists reports whether the object of a request exists.
func (i *Injection) exists(t trace.Target) bool { return i.names(t)[t.Name] }

// names returns the names of the objects of a type in a namespace.
func (i *Injection) names(t trace.Target) map[string]bool {
	names := map[string]bool{}
	kind, err := i.config.Cluster.Mapper.KindFor(schema.GroupVersionResource{Group: t.Group, Version: t.Version, Resource: t.Resource})
	if err != nil {
		return names
	}
	for ref := range i.config.Store.Objects() {
		if ref.GroupKind == kind.GroupKind() && ref.Namespace == t.Namespace {
			names[ref.Name] = true
		}
	}
	return names
}

// revoked refuses the verb of the request for its type and subresource, as the authorizer RBAC does;
// see k8s.io/apiserver/pkg/endpoints/handlers/responsewriters.ForbiddenStatusError.
func revoked(i *Injection, first *trace.Call) *refusal {
	return &refusal{
		covers: func(call *trace.Call) bool {
			return call.Verb == first.Verb && sameType(call.Target, first.Target) && call.Target.Subresource == first.Target.Subresource
		},
		answer: forbidden(nameInURL, func(call *trace.Call) error { return missing(i.config.User, call) }),
	}
}

// nameInURL returns the name of the object of a request, as far as the authorizer knows it.
func nameInURL(call *trace.Call) string {
	if call.Verb == "create" && call.Target.Subresource == "" {
		return ""
	}
	return call.Target.Name
}

// missing returns the error of the authorizer for a request of a user.
func missing(user string, call *trace.Call) error {
	t := call.Target
	resource := t.Resource
	if t.Subresource != "" {
		resource += "/" + t.Subresource
	}
	where := "at the cluster scope"
	if t.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", t.Namespace)
	}
	//nolint:staticcheck // This is the message of upstream's authorizer.
	return fmt.Errorf("User %q cannot %s resource %q in API group %q %s", user, call.Verb, resource, t.Group, where)
}

func sameType(a, b trace.Target) bool { return a.Group == b.Group && a.Resource == b.Resource }
