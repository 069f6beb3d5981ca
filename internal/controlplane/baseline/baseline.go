// Package baseline records the state of a running plane as its baseline, and returns
// the plane to that state.
//
// A reset undoes every difference from the baseline in the store, and then waits until
// everything in the plane has noticed the changes:
//
//	differences ──▶ delete ──▶ put back ──▶ settled? ──▶ differences ──▶ none, twice
//	     ▲                                    │ no             │ some
//	     └────────────────────────────────────┴────────────────┘
//
// During a reset, controllers react to the changes that they see, or finish work that they
// had begun; anything that they write becomes another difference.
package baseline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/koboshi-dev/koboshi/internal/controlplane/poll"
	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
)

// ErrNone reports a Reset before the first Checkpoint.
var ErrNone = errors.New("there is no baseline to return to; call Checkpoint first")

const (
	// settleTimeout limits Checkpoint and Reset, which a client that keeps writing could
	// otherwise prolong forever.
	settleTimeout = 30 * time.Second
	// quietLooks is the number of consecutive checks that must find nothing to do. One
	// check would not be enough: an event that an informer has already delivered may not
	// yet be in the controller's queue.
	quietLooks = 2
	// restInterval is the pause between two checks of a Checkpoint.
	restInterval = 10 * time.Millisecond
)

// errUnsettled reports that settleTimeout has passed.
var errUnsettled = fmt.Errorf("the plane did not become idle within %v; stop the controllers and clients that are still writing, and try again", settleTimeout)

// Config describes the plane whose baseline is kept.
type Config struct {
	// Store holds the plane's objects and nothing else.
	Store *storage.Etcd
	// API is the configuration of an administrator's client.
	API *rest.Config
	// Prefix is the common prefix of kube-apiserver's keys, including the final slash.
	Prefix string
	// Bootstrap lists the keys below Prefix of the objects that the plane itself creates,
	// possibly after /readyz is green. A baseline contains all the keys in Bootstrap.
	Bootstrap []string
	// Aggregated lists the ClusterRoles that the API server creates without rules, and whose rules
	// upstream's aggregation controller then fills in. Until the rules are filled in, the
	// aggregation controller may be waiting for a retry, and nothing shows that it is waiting. If a
	// baseline lacked the rules, resets and the controller would keep undoing each other's writes.
	Aggregated []string
	// Waiting is called with the reason why a Checkpoint or Reset takes long. It may be nil.
	Waiting func(what string)
}

// A Keeper takes the baseline of one plane and returns the plane to it.
type Keeper struct {
	Config

	mu       sync.Mutex // allows one Checkpoint or Reset at a time
	baseline *storage.Baseline
	client   *kubernetes.Clientset
	mapper   *restmapper.DeferredDiscoveryRESTMapper
}

// New returns a keeper. It sends no requests.
func New(c Config) *Keeper { return &Keeper{Config: c} }

// Checkpoint waits until the plane is idle and makes its current state the baseline for
// Reset. A Checkpoint immediately after the start of the plane records the state that the
// start created.
func (k *Keeper) Checkpoint(ctx context.Context) error {
	err := k.exclusively(ctx, k.checkpoint)
	if err != nil {
		return fmt.Errorf("taking the baseline: %w", err)
	}
	return nil
}

// Reset returns the running plane to the baseline. Clients see ordinary events with
// rising versions; objects come back with their original UIDs. Reset returns when reads,
// discovery and the plane's own controllers all reflect the baseline. A write by a client
// during a Reset may be undone or kept. Stop controllers outside the plane first.
func (k *Keeper) Reset(ctx context.Context) error {
	err := k.exclusively(ctx, k.reset)
	if err != nil {
		return fmt.Errorf("resetting the plane: %w", err)
	}
	return nil
}

func (k *Keeper) exclusively(ctx context.Context, run func(context.Context) error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.client == nil {
		config := rest.CopyConfig(k.API)
		config.QPS = -1 // unlimited, because the server is in this process
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		k.client = client
		k.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, settleTimeout, errUnsettled)
	defer cancel()
	return run(ctx)
}

func (k *Keeper) checkpoint(ctx context.Context) error {
	var candidate *storage.Baseline
	quiet := 0
	err := poll.Poll{Interval: restInterval, Waiting: k.Waiting}.Until(ctx, "the plane to become idle", func(ctx context.Context) (bool, error) {
		err := k.atRest(ctx, candidate)
		if err == nil {
			quiet++
			return quiet >= quietLooks, nil
		}
		quiet = 0
		var failed error
		if candidate, failed = k.Store.Baseline(ctx, k.Prefix); failed != nil {
			return false, failed
		}
		return false, err
	})
	if err == nil {
		k.baseline = candidate
	}
	return err
}

// atRest returns an error unless the plane is idle and its state is still that of the candidate.
func (k *Keeper) atRest(ctx context.Context, candidate *storage.Baseline) error {
	if candidate == nil {
		return errors.New("the store has not been read yet")
	}
	for _, key := range k.Bootstrap {
		if !candidate.Has(k.Prefix + key) {
			return fmt.Errorf("%s does not exist yet", key)
		}
	}
	if err := k.aggregated(ctx); err != nil {
		return err
	}
	differences, err := candidate.Differences(ctx)
	if err != nil {
		return err
	}
	if differences = k.lasting(differences); len(differences) > 0 {
		return fmt.Errorf("%d objects are still changing, among them %s", len(differences), differences[0].Key)
	}
	return idle(nil)
}

// aggregated returns an error if a ClusterRole in Aggregated exists, but has no rules yet.
func (k *Keeper) aggregated(ctx context.Context) error {
	for _, name := range k.Aggregated {
		role, err := k.client.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue // a user has deleted it
		}
		if err != nil {
			return err
		}
		if len(role.Rules) == 0 {
			return fmt.Errorf("the ClusterRole %s has no rules yet", name)
		}
	}
	return nil
}

// lasting removes the differences that the plane itself causes continually.
func (k *Keeper) lasting(differences []storage.Difference) []storage.Difference {
	return slices.DeleteFunc(differences, func(d storage.Difference) bool {
		key := strings.TrimPrefix(d.Key, k.Prefix)
		// The API server writes these objects to show that it is alive, and writes them
		// again if they are missing.
		for _, own := range []string{"masterleases/", "peerserverleases/", "leases/kube-system/apiserver-"} {
			if strings.HasPrefix(key, own) {
				return true
			}
		}
		// A node in the baseline is still running, and would look dead if its old heartbeat
		// were restored.
		return strings.HasPrefix(key, "leases/kube-node-lease/") && d.Now != nil && d.Then != nil
	})
}
