package apiserver

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	// This import provides time zone data on machines that have none, as in upstream's main.
	_ "time/tzdata"

	// This import allows logs in JSON, as in upstream's main.
	_ "k8s.io/component-base/logs/json/register"
	// This import adds the version to the metrics, as in upstream's main.
	_ "k8s.io/component-base/metrics/prometheus/version"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/server/flagz"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/client-go/rest"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	basecompatibility "k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	utilversion "k8s.io/component-base/version"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// These are the exit codes of upstream's program.
const (
	exitOK    = 0
	exitError = 1
)

// Tell answers --help and --version with upstream's text. Upstream handles the
// signals of the process during this call, so call Tell only in a process that
// does nothing else.
func Tell(args []string) int {
	cmd := app.NewAPIServerCommand()
	cmd.SetArgs(args)
	if err := cmd.Execute(); err != nil {
		return exitError
	}
	return exitOK
}

// A Command is one run of the program kube-apiserver. A Command logs and prints to os.Stdout and
// os.Stderr, as upstream does.
type Command struct {
	Surroundings
	// Args are the command line without the program's name.
	Args []string
	// Started is called when the server begins to serve. The parameter loopback
	// configures a client with which the server calls itself. Started runs in
	// parallel with the server.
	Started func(ctx context.Context, loopback *rest.Config)
}

// Run serves until ctx ends and returns the exit code. At the end it cuts all
// connections, as if the process had exited: upstream would wait up to a
// minute for open watches.
func (c Command) Run(ctx context.Context) int {
	opts, fs, err := c.parse()
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "Error: %v\n", err)
		return exitError
	}
	if err := c.serve(ctx, opts, fs); err != nil {
		klog.ErrorS(err, "command failed")
		return exitError
	}
	return exitOK
}

func (c Command) parse() (*options.ServerRunOptions, *pflag.FlagSet, error) {
	opts, fs := newOptions()
	if err := fs.Parse(c.Args); err != nil {
		return nil, nil, err
	}
	for _, arg := range fs.Args() {
		if arg != "" {
			return nil, nil, fmt.Errorf("%q does not take any arguments, got %q", fs.Name(), fs.Args())
		}
	}
	return opts, fs, opts.GenericServerRunOptions.ComponentGlobalsRegistry.Set()
}

// newOptions returns upstream's options and the flags that set them, including
// the logging flags and --version.
func newOptions() (*options.ServerRunOptions, *pflag.FlagSet) {
	opts := options.NewServerRunOptions()
	sets := opts.Flags()
	opts.Flagz = flagz.NamedFlagSetsReader{FlagSets: sets}
	fs := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	verflag.AddFlags(sets.FlagSet("global"))
	globalflag.AddGlobalFlags(sets.FlagSet("global"), fs.Name(), logs.SkipLoggingConfigurationFlags())
	for _, set := range sets.FlagSets {
		fs.AddFlagSet(set)
	}
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	return opts, fs
}

func (c Command) serve(ctx context.Context, opts *options.ServerRunOptions, fs *pflag.FlagSet) error {
	gates := opts.GenericServerRunOptions.ComponentGlobalsRegistry.FeatureGateFor(basecompatibility.DefaultKubeComponent)
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	if err := logsapi.ValidateAndApply(opts.Logs, gates); err != nil {
		return err
	}
	cliflag.PrintFlags(fs)
	klog.Infof("Version: %+v", utilversion.Get())
	klog.InfoS("Golang settings", "GOGC", os.Getenv("GOGC"), "GOMAXPROCS", os.Getenv("GOMAXPROCS"), "GOTRACEBACK", os.Getenv("GOTRACEBACK"))
	advertise(opts, fs)
	completed, err := complete(ctx, opts)
	if err != nil {
		return err
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return utilerrors.NewAggregate(errs)
	}
	gates.(featuregate.MutableFeatureGate).AddMetrics()
	opts.GenericServerRunOptions.ComponentGlobalsRegistry.AddMetrics()
	cut, err := listen(completed.SecureServing.SecureServingOptions)
	if err != nil {
		return err
	}
	defer cut.all()
	server, err := assemble(completed, c.Surroundings)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	go c.Started(ctx, server.LoopbackConfig())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		cut.all()
		server.flushAudit()
		return nil
	}
}

// flushTimeout limits the wait for the receiver of audit events.
const flushTimeout = 2 * time.Second

// flushAudit delivers the audit events that are still waiting in a batch.
func (s *Server) flushAudit() {
	backend := s.aggregator.GenericAPIServer.AuditBackend
	if backend == nil {
		return
	}
	flushed := make(chan struct{})
	go func() {
		backend.Shutdown()
		close(flushed)
	}()
	select {
	case <-flushed:
	case <-time.After(flushTimeout):
	}
}

// HasAddress reports whether the machine has an address that a server with this bind address can
// advertise, so that there are endpoints of the Service kubernetes. A machine without a default route
// has none.
func HasAddress(bind net.IP) bool {
	_, err := utilnet.ResolveBindAddress(bind)
	return err == nil
}

// advertise lets the server start on a machine without a default route, where
// upstream's server finds no address to advertise and refuses to start.
func advertise(opts *options.ServerRunOptions, fs *pflag.FlagSet) {
	if fs.Changed("advertise-address") || fs.Changed("external-hostname") {
		return
	}
	if HasAddress(opts.SecureServing.BindAddress) {
		return
	}
	opts.GenericServerRunOptions.AdvertiseAddress = net.IPv4(127, 0, 0, 1)
	if !fs.Changed("endpoint-reconciler-type") {
		opts.EndpointReconcilerType = "none" // a loopback address is not valid in Endpoints
	}
}

// listen opens the port that the options name. If the options require upstream to open the port,
// listen does nothing.
func listen(o *genericoptions.SecureServingOptions) (*cutListener, error) {
	cut := &cutListener{}
	if o.Listener != nil || o.BindPort <= 0 || o.PermitPortSharing || o.PermitAddressSharing {
		return cut, nil
	}
	address := net.JoinHostPort(o.BindAddress.String(), strconv.Itoa(o.BindPort))
	inner, port, err := genericoptions.CreateListener(o.BindNetwork, address, net.ListenConfig{})
	if err != nil {
		return nil, err
	}
	cut.Listener = inner
	o.Listener, o.BindPort = cut, port
	return cut, nil
}
