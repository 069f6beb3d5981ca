// Package apiserver assembles upstream's kube-apiserver in this process.
//
// The server is configured by upstream's own flags and built by upstream's own
// functions; nothing of what it serves is ours. Two things are arranged
// differently, both invisible to clients: it takes a listener that is already
// open, so that a port cannot be lost between choosing and binding it, and two
// bootstrap hooks do not sleep before their first attempt (see bootstrap.go).
package apiserver

import (
	"context"
	"fmt"
	"net"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
)

// Config says how to build the server.
type Config struct {
	// Flags are kube-apiserver's own, such as "--etcd-servers=…".
	Flags []string
	// Listener receives the connections. The server closes it.
	Listener net.Listener
	// OwnStore is set when only this program ever wrote to the store. Then the
	// bootstrap may skip the migrations from releases long before ours.
	OwnStore bool
	// UserAgent is what the server calls itself as a client of itself.
	UserAgent string
}

// Server is an assembled kube-apiserver.
type Server struct {
	aggregator *aggregatorapiserver.APIAggregator
}

// A FlagError is what kube-apiserver says against Config.Flags.
type FlagError struct{ Err error }

func (e *FlagError) Error() string { return "kube-apiserver refuses its flags: " + e.Err.Error() }

func (e *FlagError) Unwrap() error { return e.Err }

// New builds the server. The store must answer already.
func New(ctx context.Context, c Config) (*Server, error) {
	opts, err := c.options(ctx)
	if err != nil {
		return nil, err
	}
	cfg, err := app.NewConfig(opts)
	if err != nil {
		return nil, fmt.Errorf("configuring kube-apiserver: %w", err)
	}
	cfg.KubeAPIs.ControlPlane.Generic.LoopbackClientConfig.UserAgent = c.UserAgent
	aggregator, err := chain(cfg, c.OwnStore)
	if err != nil {
		return nil, fmt.Errorf("assembling kube-apiserver: %w", err)
	}
	return &Server{aggregator: aggregator}, nil
}

// LoopbackConfig is a client with all rights, authenticated by a token that
// never leaves this process.
func (s *Server) LoopbackConfig() *rest.Config {
	return rest.CopyConfig(s.aggregator.GenericAPIServer.LoopbackClientConfig)
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	prepared, err := s.aggregator.PrepareRun()
	if err != nil {
		return fmt.Errorf("preparing kube-apiserver: %w", err)
	}
	return prepared.Run(ctx)
}

func (c Config) options(ctx context.Context) (options.CompletedOptions, error) {
	// The process keeps one logging configuration, that of the program.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	opts := options.NewServerRunOptions()
	if err := parse(opts.Flags(), c.Flags); err != nil {
		return options.CompletedOptions{}, &FlagError{err}
	}
	opts.SecureServing.Listener = c.Listener
	opts.SecureServing.BindPort = c.Listener.Addr().(*net.TCPAddr).Port
	informerName, err := cache.NewInformerName("kube-apiserver")
	if err != nil {
		return options.CompletedOptions{}, fmt.Errorf("a kube-apiserver already runs in this process: %w", err)
	}
	opts.InformerName = informerName
	if err := opts.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return options.CompletedOptions{}, &FlagError{err}
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	completed, err := opts.Complete(ctx)
	if err != nil {
		return options.CompletedOptions{}, fmt.Errorf("completing kube-apiserver's options: %w", err)
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return options.CompletedOptions{}, &FlagError{utilerrors.NewAggregate(errs)}
	}
	return completed, nil
}

// chain builds the three servers and puts our bootstrap hooks in the place of
// the two that sleep, under the same names, so that /readyz lists what it
// lists upstream.
func chain(cfg *app.Config, ownStore bool) (*aggregatorapiserver.APIAggregator, error) {
	// The set is one map that all servers of the chain hold.
	disabled := cfg.KubeAPIs.ControlPlane.Generic.DisabledPostStartHooks
	replaced := []string{schedulingrest.PostStartHookName}
	// Without RBAC upstream disables the hook itself, and so it stays.
	if ownStore && !disabled.Has(rbacrest.PostStartHookName) {
		replaced = append(replaced, rbacrest.PostStartHookName)
	}
	disabled.Insert(replaced...)
	completed, err := cfg.Complete()
	if err != nil {
		return nil, err
	}
	aggregator, err := app.CreateServerChain(completed)
	if err != nil {
		return nil, err
	}
	disabled.Delete(replaced...)
	for _, name := range replaced {
		if err := aggregator.GenericAPIServer.AddPostStartHook(name, bootstrapHooks[name]); err != nil {
			return nil, err
		}
	}
	return aggregator, nil
}

func parse(sets cliflag.NamedFlagSets, args []string) error {
	fs := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		fs.AddFlagSet(set)
	}
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	return fs.Parse(args)
}
