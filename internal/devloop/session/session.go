// Package session runs the manager of a project against a plane in this process, and brings
// each edit into the manager.
//
//	edits ──▶ devloop.Loop ──▶ Session: generate, build, apply, restart, samples
//	                              │
//	kube-apiserver ◀── apiproxy ◀─┴─ the manager: a child process with the user's environment
//	     └──review──▶ webhook.Listener ──▶ its webhook server
//
// The plane, the listener and the recording live as long as the session; only the manager and
// its proxy are replaced.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/koboshi-dev/koboshi/internal/controlplane"
	"github.com/koboshi-dev/koboshi/internal/controlplane/controllers"
	"github.com/koboshi-dev/koboshi/internal/devloop"
	"github.com/koboshi-dev/koboshi/internal/devloop/apply"
	"github.com/koboshi-dev/koboshi/internal/devloop/debugger"
	"github.com/koboshi-dev/koboshi/internal/devloop/edit"
	"github.com/koboshi-dev/koboshi/internal/devloop/pause"
	"github.com/koboshi-dev/koboshi/internal/devloop/watch"
	"github.com/koboshi-dev/koboshi/internal/devloop/webhook"
	"github.com/koboshi-dev/koboshi/internal/loopback"
	"github.com/koboshi-dev/koboshi/internal/pki"
	"github.com/koboshi-dev/koboshi/internal/programs"
	"github.com/koboshi-dev/koboshi/internal/project"
	"github.com/koboshi-dev/koboshi/internal/trace"
)

// Options describe a session.
type Options struct {
	// Project names the files of the project. If it has a command, the command is started
	// instead of a manager that is built.
	Project project.Options
	// Env returns variables to add to the environment of the manager. It is called each time
	// the project is read.
	Env func() ([]string, error)
	// Program lists the patterns of the files of the command. A change restarts it.
	Program []string
	// Profile names the controllers of the plane. If it is empty, the permissions of the manager
	// decide.
	Profile string
	// Programs maps images to the programs that run in Pods.
	Programs programs.Set
	// Debug builds the manager so that a debugger can be used. Delve, if it is not nil, runs the
	// manager.
	Debug bool
	Delve *debugger.Delve
	// Instrument builds the manager with a controller-runtime that reports the trigger of each
	// reconcile, for the recording.
	Instrument bool
	// Dir is a folder for this session only, and Kubeconfig a file for the administrator's
	// kubeconfig, which the session deletes at its end.
	Dir, Kubeconfig string
	// Cache is the folder for the fingerprints of generated files; see manifest.Options.
	Cache string
	// Plane holds the remaining options of the plane.
	Plane controlplane.Options
	// Cluster makes the manager run against a cluster that exists already, instead of a plane.
	Cluster *Cluster
	// Output receives what the manager prints.
	Output io.Writer
	// Observer receives everything else that a person should see.
	Observer Observer
	// Lose decides whether CRDs are applied even if the described data is lost. The
	// context ends if an edit makes the question obsolete.
	Lose func(ctx context.Context, losses []string) (bool, error)
	// Recording observes the session.
	Recording Recording
}

// Recording receives what happens in the plane and between the plane and the manager. All fields
// may be empty.
type Recording struct {
	// Log records the requests of the manager, the events of its watches, when its processes
	// start and end, what they print, and the writes of all clients to the plane's store.
	Log *trace.Log
	// Review is called after each call of a webhook, from several goroutines.
	Review func(webhook.Review)
}

// Observer receives what a person should know.
type Observer interface {
	// Note receives one sentence without a period.
	Note(text string)
	// Text receives lines that are shown as they are, such as the output of a compiler.
	Text(text string)
	// Ready is called when the plane is ready, or the cluster has answered.
	Ready(Ready)
	// Starting is called before each round.
	Starting()
	// Round is called after each round, before its errors are passed to Note or Text.
	Round(devloop.Report)
}

// Ready describes a plane that is ready, or a cluster that exists already.
type Ready struct {
	Cluster       *Cluster // nil for a plane; the other fields describe a plane
	Plane         *controlplane.Plane
	Kubeconfig    string
	Profile       string
	ProfileReason string // empty if the user has chosen the profile
	Took          time.Duration
}

// Session is a running session.
type Session struct {
	o        Options
	loop     *devloop.Loop
	plane    *controlplane.Plane
	took     time.Duration // to start the plane
	admin    *rest.Config
	listener *webhook.Listener
	ca       *pki.Authority // has signed the certificates of the webhooks
	noted    map[string]bool
	// address is the loopback address of the manager's servers that listen on all addresses,
	// so that another manager or a check can use the same ports at the same time.
	address netip.Addr
	claimed io.Closer // nil if the system has no such addresses

	// The stages of a round run one at a time, and only they use these fields.
	project      *project.Project
	program      string // the path of the built manager; empty until it is built
	instrumented instrumented
	installed    *apply.Set
	samples      *apply.Set
	crds         crds // as they were applied last

	// pausing names the deployed manager that is, or may be, paused; paused is true once nothing
	// remains to be paused. Both fields are used only in a cluster that exists already.
	pausing   *pause.Record
	paused    bool
	instances int
	granted   *trace.Grants // as they were recorded last

	mu    sync.Mutex
	child *child // the newest process, running or not
}

var _ devloop.Stages = (*Session)(nil)

// Start generates, builds, and starts a plane with the project's manifests. If it fails,
// nothing is left running.
func Start(ctx context.Context, o Options) (*Session, error) {
	var err error
	if o.Project.Dir, err = filepath.Abs(o.Project.Dir); err != nil {
		return nil, err
	}
	dir, err := filepath.EvalSymlinks(o.Project.Dir) // a walk does not follow a link at its root
	if err != nil {
		return nil, err
	}
	s := &Session{o: o, noted: map[string]bool{}}
	s.loop = &devloop.Loop{Stages: s, Starting: o.Observer.Starting, Report: s.report, Layout: edit.Layout{
		Dir: dir, Program: o.Program,
		Manifests: inside(o.Project.Dir, manifests(o.Project)), Samples: inside(o.Project.Dir, optional(o.Project.Samples)),
	}}
	if s.ca, err = pki.New("koboshi dev: authority of webhooks"); err != nil {
		return nil, err
	}
	if s.listener, err = webhook.Listen(s.ca, o.Recording.Review); err != nil {
		return nil, err
	}
	var number int
	number, s.claimed = loopback.Claim(1)
	s.address = loopback.Address(number, 0)
	if err := s.begin(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// inside turns absolute paths inside a folder into paths relative to the folder.
func inside(dir string, paths []string) []string {
	for i, p := range paths {
		if relative, err := filepath.Rel(dir, p); filepath.IsAbs(p) && err == nil && filepath.IsLocal(relative) {
			paths[i] = filepath.ToSlash(relative)
		}
	}
	return paths
}

// begin does the first round, except the start of the manager. The manager is built while the
// plane starts.
func (s *Session) begin(ctx context.Context) error {
	if err := s.loop.Begin(); err != nil {
		return err
	}
	failed := s.generateFirst(ctx)
	var err error
	if s.project, err = s.open(ctx); err != nil {
		return err
	}
	if err := s.follow(); err != nil {
		return err
	}
	var ready Ready
	var all errgroup.Group
	all.Go(func() (err error) { ready, err = s.connectOrStart(ctx); return err })
	if len(s.o.Project.Command) == 0 && failed == nil {
		s.o.Observer.Note("building " + s.project.Name)
		failed = s.Build(ctx)
	}
	if err := all.Wait(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.o.Observer.Ready(ready)
	s.recordGrants(s.project)
	if failed != nil {
		s.tell(failed)
		s.o.Observer.Note("the manager starts when this is corrected")
	}
	return nil
}

// generateFirst generates files before the project is read for the first time, because some
// projects do not keep generated manifests in git.
func (s *Session) generateFirst(ctx context.Context) error {
	if len(s.o.Project.Command) > 0 {
		return nil
	}
	written, err := s.Generate(ctx)
	if err != nil {
		return err
	}
	return s.loop.Generated(written)
}

// follow makes the loop follow the module of the main package, if that is not the project's
// module.
func (s *Session) follow() error {
	if s.project.Main == "" {
		return nil
	}
	if dir, _ := s.project.MainModule(); dir == s.project.Dir {
		return nil
	}
	return s.loop.Follow(filepath.ToSlash(s.project.Main))
}

// open reads the project.
func (s *Session) open(ctx context.Context) (*project.Project, error) {
	o := s.o.Project
	if s.o.Env != nil {
		env, err := s.o.Env()
		if err != nil {
			return nil, err
		}
		o.Env = env
	}
	p, err := project.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	s.noteOnce(p)
	return p, nil
}

// noteOnce passes on the new notes about a project.
func (s *Session) noteOnce(p *project.Project) {
	for _, note := range p.Notes {
		if !s.noted[note] && len(s.o.Project.Command) == 0 {
			s.o.Observer.Note(note)
		}
		s.noted[note] = true
	}
}

func (s *Session) profile() (profile controllers.Profile, reason string, err error) {
	name := s.o.Profile
	if name == "" {
		name, reason = s.project.Subject.Profile()
	}
	profile, err = controllers.Lookup(name)
	return profile, reason, err
}

// connectOrStart connects to the cluster of the options, or starts a plane.
func (s *Session) connectOrStart(ctx context.Context) (Ready, error) {
	if s.o.Cluster != nil {
		return Ready{Cluster: s.o.Cluster}, s.attach(ctx)
	}
	profile, reason, err := s.profile()
	if err == nil {
		err = s.startPlane(ctx, profile)
	}
	if err != nil {
		return Ready{}, err
	}
	s.recordHistory()
	return Ready{Plane: s.plane, Kubeconfig: s.plane.Kubeconfig(), Profile: profile.Name, ProfileReason: reason, Took: s.took}, nil
}

// startPlane starts a plane. The project's objects exist before its controllers start.
func (s *Session) startPlane(ctx context.Context, profile controllers.Profile) error {
	o := s.o.Plane
	o.Profile, o.Programs, o.Kubeconfig = profile, s.o.Programs, s.o.Kubeconfig
	if profile.Has(controllers.Scheduler) {
		o.Nodes = 1
	}
	o.Furnish = func(ctx context.Context, admin *rest.Config) error {
		client, err := connect(admin)
		if err != nil {
			return err
		}
		s.installed = apply.NewSet(client)
		// Webhooks follow when the plane is ready, because they could block the plane's own
		// objects.
		objects := s.pointed(s.project.Subject.Install)
		_, err = s.installed.Apply(ctx, objects)
		s.crds = crdsOf(objects)
		return err
	}
	began := time.Now()
	var err error
	if s.plane, err = controlplane.Start(ctx, o); err != nil {
		return err
	}
	s.took = time.Since(began)
	if s.admin, err = clientcmd.BuildConfigFromFlags("", s.plane.Kubeconfig()); err != nil {
		return fmt.Errorf("reading the plane's kubeconfig: %w", err)
	}
	client, err := connect(s.admin)
	if err != nil {
		return err
	}
	s.installed.Use(client)
	s.samples = apply.NewSet(client)
	return nil
}

// Run starts the manager, and runs a round for each edit, until ctx or the plane ends.
func (s *Session) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hints, err := watch.Start(ctx, s.loop.Layout.Folders)
	if err != nil {
		s.o.Observer.Note(err.Error())
	}
	s.loop.Hints = hints.Hints()
	if s.plane != nil {
		go func() {
			select {
			case <-s.plane.Failed():
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	left := edit.Edit{Apply: true, Restart: true, Samples: true}
	if s.program == "" && len(s.o.Project.Command) == 0 {
		left.Generate, left.Build = true, true
		err = s.loop.Run(ctx, edit.Edit{}, left)
	} else {
		err = s.loop.Run(ctx, left, edit.Edit{})
	}
	cancel()
	<-hints.Ended()
	return err
}

// Stop ends the manager and the plane. It returns the error of the component of the plane that
// has failed, if any.
func (s *Session) Stop() error {
	s.stopChild(exitGrace)
	s.listener.Close()
	if s.claimed != nil {
		_ = s.claimed.Close()
	}
	if s.plane == nil {
		return s.restore(context.Background())
	}
	err := s.plane.Stop()
	if s.o.Kubeconfig != "" {
		_ = os.Remove(s.o.Kubeconfig)
	}
	return err
}

// report passes on the result of a round.
func (s *Session) report(r devloop.Report) {
	s.o.Observer.Round(r)
	if r.Err != nil && !r.Stale {
		s.tell(r.Err)
	}
}

// tell passes on an error.
func (s *Session) tell(err error) {
	var shown interface{ Shown() string }
	if errors.As(err, &shown) {
		s.o.Observer.Text(shown.Shown())
		return
	}
	s.o.Observer.Note(err.Error())
}

// manifests returns the paths with manifests that the options name, or nil.
func manifests(o project.Options) (paths []string) {
	paths = append(paths, o.Manifests...)
	for _, path := range []string{o.CRDs, o.RBAC, o.Webhooks, o.Kustomization} {
		paths = append(paths, optional(path)...)
	}
	paths = append(append(paths, o.Given...), o.WithCRDs...)
	if len(paths) > 0 && len(o.Manifests) == 0 && len(o.Command) == 0 {
		paths = append(paths, "config")
	}
	return paths
}

func optional(path string) []string {
	if path == "" {
		return nil
	}
	return []string{path}
}
