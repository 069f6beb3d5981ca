// Package apiserver assembles upstream's kube-apiserver in this process.
//
// The server is configured by upstream's own flags and built by upstream's own functions;
// everything it serves comes from upstream. The differences from upstream's program are invisible
// to clients. One difference adds safety: the server takes a listener that is already open, so that
// no other process can take the port after it was chosen. The other differences make the start
// faster: two bootstrap hooks do not sleep before their first attempt (bootstrap.go); the
// certificate with which the server calls itself is cheap to create (generic.go); OpenAPI is built
// on the first request (openapi.go); and a new CRD does not wait until peer API servers learn of it
// (established.go).
package apiserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	_ "unsafe" // for go:linkname

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsopenapi "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	genericapifilters "k8s.io/apiserver/pkg/endpoints/filters"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/notfoundhandler"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	logsapi "k8s.io/component-base/logs/api/v1"
	aggregatorapiserver "k8s.io/kube-aggregator/pkg/apiserver"
	aggregatoropenapi "k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
)

// Surroundings holds the settings that the flags of a server cannot express.
type Surroundings struct {
	// OwnStore is set if no other program ever wrote to the store, so that the
	// bootstrap may skip upstream's migrations from much older releases.
	OwnStore bool
	// UserAgent is the user agent that the server uses when it calls itself.
	UserAgent string
	// Shortcut gives the server direct access to an etcd in this process. If Shortcut is nil, a
	// network connection is used.
	Shortcut *Shortcut
	// Users maps bearer tokens to additional users, besides those that the
	// flags define.
	Users map[string]*user.DefaultInfo
	// WebhookAddress gives addresses to Services of webhooks. If it is nil, all Services are resolved
	// as upstream does.
	WebhookAddress WebhookAddress
}

// Config describes the server to build.
type Config struct {
	Surroundings
	// Flags are flags of kube-apiserver, such as "--etcd-servers=…".
	Flags []string
	// Listener receives the connections. The server closes it.
	Listener net.Listener
}

// Server is an assembled kube-apiserver.
type Server struct {
	aggregator *aggregatorapiserver.APIAggregator
	self       *inProcess
}

// A FlagError reports that kube-apiserver rejects Config.Flags.
type FlagError struct{ Err error }

func (e *FlagError) Error() string { return "kube-apiserver rejects its flags: " + e.Err.Error() }

func (e *FlagError) Unwrap() error { return e.Err }

// New builds the server. The store must already be answering.
func New(ctx context.Context, c Config) (*Server, error) {
	opts, err := c.options(ctx)
	if err != nil {
		return nil, err
	}
	return assemble(opts, c.Surroundings)
}

func assemble(opts options.CompletedOptions, s Surroundings) (*Server, error) {
	s.Shortcut.install()
	cfg, self, err := newConfig(opts, s)
	if err != nil {
		return nil, fmt.Errorf("configuring kube-apiserver: %w", err)
	}
	aggregator, err := chain(cfg, s.OwnStore)
	if err != nil {
		return nil, fmt.Errorf("assembling kube-apiserver: %w", err)
	}
	return &Server{aggregator, self}, nil
}

// LoopbackConfig returns the configuration of a client with all rights,
// authenticated by a token that never leaves this process.
func (s *Server) LoopbackConfig() *rest.Config {
	return rest.CopyConfig(s.aggregator.GenericAPIServer.LoopbackClientConfig)
}

// Run serves until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	prepared, err := s.aggregator.PrepareRun()
	if err != nil {
		return fmt.Errorf("preparing kube-apiserver: %w", err)
	}
	s.self.serve(s.aggregator.GenericAPIServer.Handler)
	return prepared.Run(ctx)
}

func (c Config) options(ctx context.Context) (options.CompletedOptions, error) {
	// The logging configuration of this process must stay as the program has
	// set it.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	opts, fs := newOptions()
	if err := fs.Parse(c.Flags); err != nil {
		return options.CompletedOptions{}, &FlagError{err}
	}
	opts.SecureServing.Listener = c.Listener
	opts.SecureServing.BindPort = c.Listener.Addr().(*net.TCPAddr).Port
	if err := opts.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return options.CompletedOptions{}, &FlagError{err}
	}
	advertise(opts, fs)
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	completed, err := complete(ctx, opts)
	if err != nil {
		return options.CompletedOptions{}, err
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return options.CompletedOptions{}, &FlagError{utilerrors.NewAggregate(errs)}
	}
	return completed, nil
}

func complete(ctx context.Context, opts *options.ServerRunOptions) (options.CompletedOptions, error) {
	informerName, err := cache.NewInformerName("kube-apiserver")
	if err != nil {
		return options.CompletedOptions{}, fmt.Errorf("a kube-apiserver already runs in this process: %w", err)
	}
	opts.InformerName = informerName
	completed, err := opts.Complete(ctx)
	if err != nil {
		return options.CompletedOptions{}, fmt.Errorf("completing kube-apiserver's options: %w", err)
	}
	return completed, nil
}

// newConfig does the same as upstream's app.NewConfig, but uses generic.go for
// the generic part and defers OpenAPI.
func newConfig(opts options.CompletedOptions, s Surroundings) (*app.Config, *inProcess, error) {
	g, err := newGeneric(opts, s)
	if err != nil {
		return nil, nil, err
	}
	var upstream webhook.ServiceResolver
	if s.WebhookAddress != nil {
		var restore func()
		if upstream, restore, err = divert(s.WebhookAddress, opts, g); err != nil {
			return nil, nil, err
		}
		defer restore()
	}
	kube, resolver, initializers, err := app.CreateKubeAPIServerConfig(opts, g.Config, g.informers, g.storage)
	if err != nil {
		return nil, nil, err
	}
	if upstream == nil {
		upstream = resolver
	}
	controlPlane := &kube.ControlPlane
	authentication := webhook.NewDefaultAuthenticationInfoResolverWrapper(controlPlane.ProxyTransport, g.EgressSelector, g.LoopbackClientConfig, g.TracerProvider)
	crds, err := controlplaneapiserver.CreateAPIExtensionsConfig(*g.Config, g.informers, initializers, opts.CompletedOptions, opts.MasterCount, resolver, authentication)
	if err != nil {
		return nil, nil, err
	}
	aggregator, err := controlplaneapiserver.CreateAggregatorConfig(*g.Config, opts.CompletedOptions, g.informers, upstream, controlPlane.ProxyTransport, controlPlane.PeerProxy, initializers)
	if err != nil {
		return nil, nil, err
	}
	// The CRD server and the aggregator each serve one API group; computing the schemas of all
	// other groups for them would be wasted work.
	describeOnly(&crds.GenericConfig.Config, apiextensionsopenapi.GetOpenAPIDefinitions)
	describeOnly(&aggregator.GenericConfig.Config, aggregatoropenapi.GetOpenAPIDefinitions)
	crds.GenericConfig.AdmissionControl = keepTransitions{crds.GenericConfig.AdmissionControl}
	return &app.Config{Options: opts, KubeAPIs: kube, ApiExtensions: crds, Aggregator: aggregator}, g.self, nil
}

func describeOnly(c *genericapiserver.Config, get common.GetOpenAPIDefinitions) {
	v2, v3 := *c.OpenAPIConfig, *c.OpenAPIV3Config
	v2.GetDefinitions, v3.GetDefinitions = get, get
	v3.Definitions = definitions(&v3)
	c.OpenAPIConfig, c.OpenAPIV3Config = &v2, &v3
}

// apiVersionPriorities is upstream's order of the groups in discovery.
//
//go:linkname apiVersionPriorities k8s.io/kubernetes/cmd/kube-apiserver/app.apiVersionPriorities
var apiVersionPriorities map[schema.GroupVersion]controlplaneapiserver.APIServicePriority

// chain builds the three servers as upstream's app.CreateServerChain does. The two bootstrap hooks
// that sleep are replaced. The replacements have the same names, so that /readyz lists the same
// checks as upstream.
func chain(cfg *app.Config, ownStore bool) (*aggregatorapiserver.APIAggregator, error) {
	g := cfg.KubeAPIs.ControlPlane.Generic
	// All three servers share this set of disabled hooks.
	disabled := g.DisabledPostStartHooks
	replaced := []string{schedulingrest.PostStartHookName}
	// Without RBAC, upstream disables the RBAC hook, and the replacement must
	// stay disabled as well.
	if ownStore && !disabled.Has(rbacrest.PostStartHookName) {
		replaced = append(replaced, rbacrest.PostStartHookName)
	}
	disabled.Insert(replaced...)
	var lazy *lazyOpenAPI
	g.SkipOpenAPIInstallation = true
	buildChain := cfg.Aggregator.GenericConfig.BuildHandlerChainFunc
	cfg.Aggregator.GenericConfig.BuildHandlerChainFunc = func(h http.Handler, c *genericapiserver.Config) http.Handler {
		return buildChain(lazy.keepPromises(h), c)
	}
	var writes ownWrites
	cfg.ApiExtensions.GenericConfig.LoopbackClientConfig = writes.client(g.LoopbackClientConfig)
	completed, err := cfg.Complete()
	if err != nil {
		return nil, err
	}

	notFound := notfoundhandler.New(g.Serializer, genericapifilters.NoMuxAndDiscoveryIncompleteKey)
	crds, err := completed.ApiExtensions.New(genericapiserver.NewEmptyDelegateWithCustomHandler(notFound))
	if err != nil {
		return nil, err
	}
	informer := crds.Informers.Apiextensions().V1().CustomResourceDefinitions()
	if err := informer.Informer().SetTransform(longEstablished); err != nil {
		return nil, err
	}
	writes.from(informer.Informer())
	kube, err := completed.KubeAPIs.New(crds.GenericAPIServer)
	if err != nil {
		return nil, err
	}
	lazy = newLazyOpenAPI(kube.ControlPlane.GenericAPIServer, g.OpenAPIConfig, g.OpenAPIV3Config)
	lazy.install()
	g.OpenAPIV3Config.Definitions = nil // built again on the first request
	served := completed.ApiExtensions.GenericConfig.MergedResourceConfig.ResourceEnabled(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	aggregator, err := controlplaneapiserver.CreateAggregatorServer(completed.Aggregator, kube.ControlPlane.GenericAPIServer, informer, served, apiVersionPriorities)
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
