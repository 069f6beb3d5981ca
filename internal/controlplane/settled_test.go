package controlplane

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/koboshi-dev/koboshi/internal/controlplane/baseline"
)

func TestReadsAndDiscoveryShowTheBaselineTheMomentResetReturns(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	l := newLab(t, "api", 0)
	l.create(namespaces, "", object("v1", "Namespace", "base"))
	l.checkpoint()
	for round := range 2 {
		l.define(widgetDefinition(map[string]string{"size": "integer"}))
		for i := range 300 {
			l.create(widgets, "base", widget("w-"+strconv.Itoa(i), false))
			l.create(configMaps, "base", configMap("c-"+strconv.Itoa(i), "extra"))
		}
		l.reset()
		if list, err := l.dynamic.Resource(widgets).List(t.Context(), metav1.ListOptions{ResourceVersion: "0"}); !apierrors.IsNotFound(err) {
			t.Errorf("round %d: widgets are served: %v, %v", round, list, err)
		}
		list, err := l.dynamic.Resource(configMaps).Namespace("base").List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		l.ok(err)
		if len(list.Items) > 0 {
			t.Errorf("round %d: %d deleted config maps can still be read", round, len(list.Items))
		}
		if _, err := l.typed.Discovery().ServerResourcesForGroupVersion("example.com/v1"); !apierrors.IsNotFound(err) {
			t.Errorf("round %d: discovery still lists widgets: %v", round, err)
		}
	}
}

func TestPlaneHasNotSettledWhileSomethingShowsWhatWasUndone(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	l := newLab(t, "api", 0)
	l.furnish()
	l.checkpoint()
	stored, err := l.get(definitions, "", "widgets.example.com")
	l.ok(err)
	value, err := stored.MarshalJSON()
	l.ok(err)
	undone := baseline.Undone{Revision: version(t, stored)}
	undone.Key, undone.Now = "widgets.example.com", value
	wanted := undone
	wanted.Then = value
	l.until("a plane that serves what it should", func(ctx context.Context) (bool, error) { return true, l.keeper.Settled(ctx, wanted) })
	if err := l.keeper.Settled(t.Context(), undone); err == nil || !strings.Contains(err.Error(), "widgets") {
		t.Errorf("a CRD that is not in the baseline is served: %v, want an error that names it", err)
	}
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: "reset-busy"})
	t.Cleanup(queue.ShutDown)
	queue.Add("a")
	// The error of a Reset may name another queue that is busy, or only the timeout.
	l.until("a reset that names the queue", func(ctx context.Context) (bool, error) {
		soon, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err := l.Reset(soon)
		if err == nil {
			t.Fatal("Reset succeeded while a controller had work to do")
		}
		if !strings.Contains(err.Error(), "reset-busy") {
			return false, err
		}
		return true, nil
	})
	queue.Get()
	queue.Done("a")
	l.reset()
	value, err = configMap("late", "").MarshalJSON()
	l.ok(err)
	late := baseline.Undone{Revision: version(t, stored) + 1_000_000}
	late.Key, late.Now = "configmaps/base/late", value
	if err := l.keeper.Settled(t.Context(), late); err == nil || !strings.Contains(err.Error(), "ConfigMap") {
		t.Errorf("a watch cache that is behind: %v, want an error that names its kind", err)
	}
}

func TestTheBaselineContainsTheRulesOfAggregatedRoles(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	// Nothing aggregates roles in this profile, so the test aggregates them.
	l := newLab(t, "api", 0)
	if len(l.keeper.Aggregated) > 0 {
		t.Errorf("without the controller, the plane waits for the rules of %q", l.keeper.Aggregated)
	}
	keeper := baseline.New(baseline.Config{Store: l.etcd, API: l.loopback, Prefix: l.storePrefix(), Aggregated: []string{"admin", "edit", "deleted"}})
	roles := l.typed.RbacV1().ClusterRoles()
	for _, name := range []string{"admin", "edit"} {
		var err error
		// On a busy machine, Checkpoint may need more than a second to find the role without rules.
		for limit := time.Second; limit < time.Minute; limit *= 2 {
			soon, cancel := context.WithTimeout(t.Context(), limit)
			err = keeper.Checkpoint(soon)
			cancel()
			if err == nil || strings.Contains(err.Error(), "has no rules yet") {
				break
			}
		}
		if err == nil || !strings.Contains(err.Error(), "ClusterRole "+name+" has no rules yet") {
			t.Errorf("the error is %v, want one that names the ClusterRole %s", err, name)
		}
		role, err := roles.Get(t.Context(), name, metav1.GetOptions{})
		l.ok(err)
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}}
		_, err = roles.Update(t.Context(), role, metav1.UpdateOptions{})
		l.ok(err)
	}
	l.ok(keeper.Checkpoint(t.Context()))
}

func TestAPlaneWithTheControllerHasAggregatedRolesInItsBaseline(t *testing.T) {
	if !inOwnProcess(t) {
		return
	}
	l := newLab(t, "full", 0)
	if len(l.keeper.Aggregated) == 0 {
		t.Error("the plane does not wait for the rules of aggregated roles")
	}
	l.checkpoint()
	for _, name := range l.keeper.Aggregated {
		role, err := l.typed.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
		l.ok(err)
		if role.AggregationRule == nil || len(role.Rules) == 0 {
			t.Errorf("%s: %+v", name, role)
		}
	}
}
