package cri

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	internalapi "k8s.io/cri-api/pkg/apis"
	"k8s.io/cri-streaming/pkg/streaming"

	"github.com/koboshi-dev/koboshi/internal/controlplane/cri/container"
	"github.com/koboshi-dev/koboshi/internal/programs"
)

// Config configures a Runtime.
type Config struct {
	Programs programs.Set
	// Dir is the runtime's own folder. New removes its content.
	Dir string
	// HostPaths lists the folders whose content may be mounted into
	// containers.
	HostPaths []string
	// HidePaths lists files and folders of this machine that containers see empty.
	HidePaths []string
	// Subnet is the network from which Pods get their addresses.
	Subnet netip.Prefix
	// Init is the command that runs Main of package container. Empty means
	// this program.
	Init []string
	// Log receives the messages that are not returned to a caller. Nil discards
	// them.
	Log *slog.Logger
}

// Runtime is the container runtime.
type Runtime struct {
	config    Config
	cwd       string // the default working directory
	hostPaths []string
	listener  net.Listener // for streaming
	server    streaming.Server

	mu         sync.Mutex
	sandboxes  map[string]*sandbox
	containers map[string]*process
	taken      map[netip.Addr]bool
	last       netip.Addr
	watchers   map[chan event]struct{}
	closing    bool
	alive      sync.WaitGroup // programs that are starting or running
	unfiltered sync.Once
}

var (
	_ internalapi.RuntimeService      = (*Runtime)(nil)
	_ internalapi.ImageManagerService = (*Runtime)(nil)
)

// goodbye is the time that programs have at the end of Run to stop on their own. The time is
// short because a user who pressed Ctrl-C waits until it has passed. Pods that the kubelet
// stopped earlier have already had their full grace periods.
const goodbye = time.Second

// New prepares a runtime. Exec, attach and port-forward work only during Run.
func New(config Config) (*Runtime, error) {
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return nil, errors.New("/proc belongs to another PID namespace: mount /proc first")
	}
	if !config.Subnet.Addr().Is4() || config.Subnet.Bits() > 24 {
		return nil, fmt.Errorf("%s has too few IPv4 addresses for Pods: use an IPv4 network of at least 256 addresses", config.Subnet)
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	if len(config.Init) == 0 {
		config.Init = []string{"/proc/self/exe", container.Verb}
	}
	if err := os.RemoveAll(config.Dir); err != nil {
		return nil, fmt.Errorf("removing the files of the previous run: %w", err)
	}
	r := &Runtime{
		config: config, last: config.Subnet.Masked().Addr(),
		sandboxes: map[string]*sandbox{}, containers: map[string]*process{},
		taken: map[netip.Addr]bool{}, watchers: map[chan event]struct{}{},
	}
	if err := os.MkdirAll(r.staging(), 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder of the container runtime: %w", err)
	}
	for _, path := range config.HostPaths {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, fmt.Errorf("finding the folder for volumes: %w", err)
		}
		r.hostPaths = append(r.hostPaths, real)
	}
	var err error
	if r.cwd, err = os.Getwd(); err != nil {
		return nil, err
	}
	return r, r.listen()
}

func (r *Runtime) staging() string { return filepath.Join(r.config.Dir, "staging") }

// Run serves exec, attach and port-forward until the context ends, then ends
// all containers and returns when they are gone.
func (r *Runtime) Run(ctx context.Context) error {
	server := &http.Server{Handler: r.server, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- server.Serve(r.listener) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-served:
		err = fmt.Errorf("serving exec, attach and port-forward: %w", err)
	}
	r.end()
	return errors.Join(err, server.Close())
}

// end stops all programs and prevents new ones from starting.
func (r *Runtime) end() {
	r.mu.Lock()
	r.closing = true
	running := r.running(func(*process) bool { return true })
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	for _, p := range running {
		p.signal(p.stopSignal())
	}
	for _, p := range running {
		select {
		case <-p.done:
		case <-ctx.Done():
			p.kill()
		}
	}
	r.alive.Wait()
}

// newID returns an ID of the length that other runtimes use.
func newID() string {
	id := make([]byte, 32)
	_, _ = rand.Read(id) // never fails, according to its documentation
	return hex.EncodeToString(id)
}

// Close does nothing: a Runtime ends with the context of Run.
func (r *Runtime) Close(context.Context) error { return nil }
