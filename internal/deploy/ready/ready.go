// Package ready waits until objects are current: until what their spec says is what the cluster has.
// The rules are those of kstatus, which Flux and kpt use as well.
package ready

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
)

const interval = 250 * time.Millisecond

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// Pending is an object that is not current, and the reason.
type Pending struct {
	cluster.ID
	Reason string
}

func (p Pending) String() string { return fmt.Sprintf("%s: %s", p.ID, p.Reason) }

// NotReady is the error of a wait that ended too early.
type NotReady struct {
	// Headline says which state was not reached.
	Headline string
	Pending  []Pending
}

func (e *NotReady) Error() string {
	lines := make([]string, 0, len(e.Pending))
	for _, p := range e.Pending {
		lines = append(lines, "  "+p.String())
	}
	return fmt.Sprintf("%s:\n%s", e.Headline, strings.Join(lines, "\n"))
}

// Wait waits until all objects are current, and reports each change of those that are not. When ctx
// ends, the error is a NotReady.
func Wait(ctx context.Context, c *cluster.Cluster, objects []*unstructured.Unstructured, report func([]Pending)) error {
	return Until(ctx, "these objects are not current", report, func(ctx context.Context) []Pending {
		var pending []Pending
		for _, u := range objects {
			if reason := check(ctx, c, u); reason != "" {
				pending = append(pending, Pending{cluster.IDOf(u), reason})
			}
		}
		return pending
	})
}

// Until calls look until it returns nothing, and reports each change. When ctx ends, the error is a
// NotReady with the headline.
func Until(ctx context.Context, headline string, report func([]Pending), look func(context.Context) []Pending) error {
	var last []Pending
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		now := look(ctx)
		// What a canceled request says is not the state of an object.
		if ctx.Err() != nil && last != nil {
			return false, ctx.Err()
		}
		if !slices.Equal(now, last) {
			report(now)
		}
		last = now
		return len(now) == 0, nil
	})
	if err == nil || len(last) == 0 {
		return err
	}
	return &NotReady{Headline: headline, Pending: last}
}

// check returns why an object is not current, or an empty text.
func check(ctx context.Context, c *cluster.Cluster, u *unstructured.Unstructured) string {
	live, err := c.Get(ctx, u)
	switch {
	case err != nil:
		return err.Error()
	case live == nil:
		return "it was deleted"
	}
	reason := Reason(live)
	if reason == "" {
		return ""
	}
	selector, ok := selectorOf(live)
	if !ok {
		return reason
	}
	list, err := c.Dynamic.Resource(pods).Namespace(live.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return reason // without permission to list Pods, show the reason of the workload itself
	}
	if of := PodReason(list.Items); of != "" {
		return of
	}
	return reason
}

// Reason returns why an object is not current, or an empty text.
func Reason(live *unstructured.Unstructured) string {
	if message := conditionMessage(live, "ReplicaFailure", "True"); message != "" {
		return message // such as a quota; kstatus only counts the replicas that are missing
	}
	result, err := status.Compute(live)
	switch {
	case err != nil:
		return err.Error()
	case result.Status == status.CurrentStatus:
		return ""
	case result.Message == "":
		return result.Status.String()
	}
	return result.Message
}

func selectorOf(u *unstructured.Unstructured) (string, bool) {
	content, found, err := unstructured.NestedMap(u.Object, "spec", "selector")
	if !found || err != nil || content["matchLabels"] == nil && content["matchExpressions"] == nil {
		return "", false
	}
	labels, _, _ := unstructured.NestedStringMap(content, "matchLabels")
	return metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: labels}), len(labels) > 0
}

func conditionMessage(u *unstructured.Unstructured, wanted, value string) string {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == wanted && c["status"] == value {
			message, _ := c["message"].(string)
			return message
		}
	}
	return ""
}
