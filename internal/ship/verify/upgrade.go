package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/deploy/cluster"
	"github.com/koboshi-dev/koboshi/internal/deploy/ready"
	"github.com/koboshi-dev/koboshi/internal/noun"
)

// upgrading records what exists before the upgrade, so that what it loses is found.
type upgrading struct {
	installed snapshot // before the scenario
	// kept has the objects of the scenario, and what the old version has made for them.
	kept   snapshot
	ledger []string
}

// installOld installs the version that is upgraded later.
func (v *verification) installOld(ctx context.Context) (err error) {
	if err := v.deploy(ctx, *v.Old); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	v.upgrading.installed, err = v.settled(ctx, settles)
	return err
}

// upgrade records what the old version has made, installs the new version over it, and returns when only the new
// version works.
func (v *verification) upgrade(ctx context.Context) (err error) {
	within, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	if v.upgrading.kept, err = v.settled(within, settles); err != nil {
		return err
	}
	maps.DeleteFunc(v.upgrading.kept, func(uid types.UID, _ cluster.ID) bool {
		_, before := v.upgrading.installed[uid]
		return before
	})
	if v.upgrading.ledger, err = scenario.ReadLedger(within, v.Scenario, v.world.cluster); err != nil {
		return err
	}
	if err := v.deploy(ctx, v.Version); err != nil {
		return err
	}
	return v.takeOver(ctx)
}

// takeOver waits until the Pods of the old version are gone, and no Lease is theirs.
func (v *verification) takeOver(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(v.config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	err = ready.Until(ctx, "the old version still runs", v.Observer.Waiting, func(ctx context.Context) (pending []ready.Pending) {
		pods, err := client.CoreV1().Pods(v.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return []ready.Pending{{Reason: err.Error()}}
		}
		for _, pod := range pods.Items {
			if pod.DeletionTimestamp != nil {
				pending = append(pending, ready.Pending{ID: cluster.ID{Kind: schema.GroupKind{Kind: "Pod"}, Namespace: pod.Namespace, Name: pod.Name}, Reason: "it is being deleted"})
			}
		}
		return pending
	})
	if err != nil {
		return err
	}
	gone := time.Now()
	return ready.Until(ctx, "the new version has not become the leader", v.Observer.Waiting, func(ctx context.Context) []ready.Pending {
		leases, err := client.CoordinationV1().Leases(v.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return []ready.Pending{{Reason: err.Error()}}
		}
		return abandoned(leases.Items, gone, time.Now())
	})
}

// abandoned returns the Leases that have a holder and have not expired, but were not renewed since a time. A new
// leader cannot begin to work before they expire.
func abandoned(leases []coordinationv1.Lease, since, now time.Time) (pending []ready.Pending) {
	for _, l := range leases {
		spec := l.Spec
		if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
			continue
		}
		expires := spec.RenewTime.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second)
		if spec.RenewTime.Before(&metav1.MicroTime{Time: since}) && expires.After(now) {
			id := cluster.ID{Kind: schema.GroupKind{Group: coordinationv1.GroupName, Kind: "Lease"}, Namespace: l.Namespace, Name: l.Name}
			pending = append(pending, ready.Pending{ID: id, Reason: "it is held by " + *spec.HolderIdentity})
		}
	}
	return pending
}

// begins is the time in which a new leader notices that it can lead, and begins to work. The clients of Kubernetes
// look every two seconds.
const begins = 5 * time.Second

// nothingLost waits until the new version has done its work, and finds out whether all that the old version had
// made is still there.
func (v *verification) nothingLost(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	now, err := v.settled(ctx, begins)
	if err != nil {
		return err
	}
	if lost := v.upgrading.kept.lost(now); len(lost) > 0 {
		return &ready.NotReady{Headline: "these objects existed before the upgrade", Pending: lost}
	}
	if err := v.current(ctx); err != nil {
		return err
	}
	ledger, err := scenario.ReadLedger(ctx, v.Scenario, v.world.cluster)
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(v.upgrading.ledger), func(line string) bool { return slices.Contains(ledger, line) })
	if len(missing) > 0 {
		return fmt.Errorf("the ledger had these lines before the upgrade:\n  %s", strings.Join(missing, "\n  "))
	}
	compared := noun.Count(len(v.upgrading.kept), "object")
	if len(v.Scenario.Ledger) > 0 {
		compared += " and " + noun.Count(len(v.upgrading.ledger), "line") + " of the ledger"
	}
	v.Observer.Note("compared " + compared + " with those before the upgrade")
	return nil
}
