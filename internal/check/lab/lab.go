// Package lab runs a controller in an isolated world: a plane that is reset to its
// baseline before each run, and a proxy between the controller and the plane. It performs
// the steps of a scenario, and applies the fault. The world is at rest when nothing has
// changed for some time.
//
//	            ┌────────── plane (Reset before each run) ◀── steps, foreign writes
//	store ◀─────┘              ▲
//	  │ every commit           │ as its service account
//	  ▼                        │
//	rest? equal? ◀── Activity ─ apiproxy ◀── controller, a process, killed and started
//	                             ▲
//	                             └─ inject: one fault at one point
//
// One process holds only one lab, because it can hold only one plane.
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/check/lab/election"
	"github.com/koboshi-dev/koboshi/internal/check/lab/gate"
	"github.com/koboshi-dev/koboshi/internal/check/process/view"
	"github.com/koboshi-dev/koboshi/internal/check/scenario"
	"github.com/koboshi-dev/koboshi/internal/check/scrub"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/controlplane"
	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/loopback"
	"github.com/koboshi-dev/koboshi/internal/programs"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Config describes a lab.
type Config struct {
	Subject subject.Subject `json:"subject"`
	// Next is the version to which Upgrade replaces Subject, and nil in a lab that makes no upgrades.
	// Its instances run in the slot next.
	Next *subject.Subject `json:"next,omitempty"`
	// Profile names the plane's controllers, as for koboshi up.
	Profile string `json:"profile"`
	// OldServer makes the API server refuse streaming lists, as servers before 1.32 do.
	// Clients of an old server list with resourceVersion=0 when they start.
	OldServer bool `json:"oldServer,omitempty"`
	// Kubernetes is the minor version that the plane emulates. Empty means the default version.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Programs maps images to the programs that really run in the Pods of a check.
	Programs programs.Set `json:"programs,omitempty"`
	// Key is used to hash secret values; all labs of a check need the same key.
	Key []byte `json:"key"`
	// Number identifies the lab on its machine, from 1 to 200. Number determines the separate
	// loopback addresses of the lab.
	Number int `json:"number"`
	// Dir is a folder for this lab only.
	Dir string `json:"dir"`
}

// Lab is a plane with a subject installed.
type Lab struct {
	config    Config
	plane     *controlplane.Plane
	store     *store
	admin     *rest.Config
	client    dynamic.Interface
	mapper    meta.ResettableRESTMapper
	identity  *rest.Config
	expires   time.Time                 // when the token of identity expires; zero for the administrator
	certs     string                    // folder of the certificate for webhooks
	ca        []byte                    // the authority of that certificate
	server    atomic.Int32              // the slot of the instance that serves webhooks; see route
	gate      atomic.Pointer[gate.Gate] // the way to these webhooks; nil unless a fault closes it
	explored  map[string]bool           // states after a kill from which an earlier run recovered
	inVain    map[schema.GroupKind]int  // how often rest waited in vain for a controller; see vain
	elections *election.Known
	processes processes
	moves     int       // counts the replacements of an installation
	number    int       // determines the loopback addresses, see loopback.Claim
	claimed   io.Closer // nil if the system does not support such addresses
	views     [slots]*view.View
	noView    error         // why there are no views; nil if there are
	absent    string        // why the controller cannot look up itself; empty if it can
	podUIDs   [slots]string // of the controller's Pods
}

// A SetupError reports a problem with the subject or a scenario that makes a check
// impossible.
type SetupError struct{ Err error }

func (e *SetupError) Error() string { return e.Err.Error() }

func (e *SetupError) Unwrap() error { return e.Err }

// New starts a plane and installs the subject. If it fails, nothing is left running.
func New(ctx context.Context, c Config) (*Lab, error) {
	trace.UseKey(c.Key)
	scrub.Known.Keep(c.Subject.Private...)
	if c.Next != nil {
		scrub.Known.Keep(c.Next.Private...)
	}
	l := &Lab{config: c, store: newStore(c.Key), explored: map[string]bool{}, inVain: map[schema.GroupKind]int{}, elections: election.NewKnown()}
	if err := l.writeVolumes(); err != nil {
		return nil, err
	}
	l.number, l.claimed = loopback.Claim(c.Number)
	l.makeViews()
	if err := l.startPlane(ctx); err != nil {
		l.unclaim()
		l.closeViews()
		return nil, err
	}
	if err := l.ready(ctx); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

// Stop stops the plane.
func (l *Lab) Stop() error {
	defer l.unclaim()
	defer l.closeViews()
	return l.plane.Stop()
}

// Failed returns a channel that is closed when the plane fails.
func (l *Lab) Failed() <-chan struct{} { return l.plane.Failed() }

func (l *Lab) startPlane(ctx context.Context) (err error) {
	profile, err := controllers.Lookup(l.config.Profile)
	if err != nil {
		return &SetupError{err}
	}
	// The start of a minute may fall into different steps in different runs, so CronJobs must not
	// create Jobs.
	if profile, err = profile.Select([]string{"-cronjob"}); err != nil {
		return &SetupError{err}
	}
	options := controlplane.Options{Profile: profile, Kubernetes: l.config.Kubernetes, Furnish: l.furnish, Processes: &l.processes, HoldJobs: true}
	options.WebhookAddress = l.webhookAddress
	if profile.Has(controllers.Scheduler) {
		options.Nodes = 1
	}
	l.runPrograms(&options)
	if l.config.OldServer {
		options.APIServerFlags = []string{"--feature-gates=WatchList=false"}
	}
	l.plane, err = controlplane.Start(ctx, options)
	var setup *SetupError
	if errors.As(err, &setup) {
		return setup
	}
	if err != nil {
		return fmt.Errorf("starting a plane: %w", err)
	}
	return nil
}

// furnish installs the subject before the plane's controllers start.
func (l *Lab) furnish(ctx context.Context, admin *rest.Config) error {
	if err := l.connect(admin); err != nil {
		return err
	}
	if err := l.install(ctx); err != nil {
		return &SetupError{err}
	}
	return nil
}

// connect creates the administrator's clients.
func (l *Lab) connect(admin *rest.Config) (err error) {
	l.admin = admin
	l.admin.QPS = -1
	l.admin.UserAgent = "koboshi-check"
	if l.client, err = dynamic.NewForConfig(l.admin); err != nil {
		return err
	}
	found, err := discovery.NewDiscoveryClientForConfig(l.admin)
	if err != nil {
		return err
	}
	l.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(found))
	return nil
}

// ready connects with the plane's kubeconfig, and saves the baseline to which each run
// resets the plane.
func (l *Lab) ready(ctx context.Context) error {
	if err := l.noPrograms(); err != nil {
		return err
	}
	admin, err := clientcmd.BuildConfigFromFlags("", l.plane.Kubeconfig())
	if err != nil {
		return fmt.Errorf("reading the plane's kubeconfig: %w", err)
	}
	if err := l.connect(admin); err != nil {
		return err
	}
	if err := l.identify(ctx); err != nil {
		return &SetupError{err}
	}
	// Follow the changes of the store as long as the plane runs.
	go func() { _ = l.plane.Follow(context.WithoutCancel(ctx), l.store.take) }()
	if err := l.plane.Checkpoint(ctx); err != nil {
		return err
	}
	return l.caughtUp(ctx)
}

// caughtUp waits until l.store has received all changes up to the current revision.
func (l *Lab) caughtUp(ctx context.Context) error {
	revision, err := l.plane.Revision(ctx)
	if err != nil {
		return err
	}
	for {
		next := l.store.Touched()
		if seen, _ := l.store.seen(); seen >= revision {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.plane.Failed():
			return errPlane
		}
	}
}

var errPlane = errors.New("the plane failed; see its log for the reason")

// cluster returns the connection to the plane for the steps of a scenario.
func (l *Lab) cluster(dir string, endpoints map[string]string, env []string) scenario.Cluster {
	return scenario.Cluster{
		Client: l.client, Mapper: l.mapper, Kubeconfig: l.plane.Kubeconfig(), Env: env, Home: l.commandHome(), Endpoints: endpoints, Dir: dir,
	}
}

func formatRevision(revision int64) string { return strconv.FormatInt(revision, 10) }

const (
	// patience is the minimum time for a stage of healing. patience must exceed a client's pauses
	// between attempts: up to a second after an answer with Retry-After, and less after a few other
	// failures.
	patience = 4 * time.Second
	// tries is the number of attempts that a controller needs if a request fails three
	// times. maxPatience is the maximum time for a stage.
	tries       = 4
	maxPatience = 20 * time.Second
)
