// Command usage-server serves the aggregated API usage.storage.koboshi.dev: the number
// and size of the objects in a bucket.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/egress"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/usage"
)

// bodies is the log verbosity at which client-go logs the bodies of requests and
// responses, which may be Secrets. Source: k8s.io/client-go/rest, logBody.
const bodies = 8

// options are the command-line flags.
type options struct {
	server                usage.Server
	bindAddress           string
	allowedEndpoints      string
	environmentNamespaces string
	namespaces            string
	verbosity             int
}

func main() {
	o, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "usage-server:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err = run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "usage-server:", err)
		os.Exit(1)
	}
}

func parseOptions(args []string) (*options, error) {
	o := &options{}
	s := &o.server
	flags := flag.NewFlagSet("usage-server", flag.ContinueOnError)
	flags.StringVar(&s.Kubeconfig, "kubeconfig", os.Getenv("KUBECONFIG"), "The kubeconfig of the API server. Empty means the API server of the cluster that this program runs in.")
	flags.StringVar(&o.bindAddress, "bind-address", ":8443", "The address to serve HTTPS on.")
	flags.StringVar(&s.CertFile, "tls-cert-file", "", "The serving certificate, in PEM; reloaded when it changes. Required.")
	flags.StringVar(&s.KeyFile, "tls-private-key-file", "", "The key of the serving certificate, in PEM. Required.")
	flags.DurationVar(&s.RequestTimeout, "request-timeout", 55*time.Second,
		"The time limit of a request. The API server, which forwards the request, gives up after its own --request-timeout, which is 60s by default.")
	flags.Int64Var(&s.MaxObjects, "max-objects", 1_000_000, "The maximum number of objects that are counted in one bucket. If a bucket has more, the response is marked as truncated.")
	flags.DurationVar(&s.MaxAge, "max-age", 5*time.Minute,
		"How long a count is cached. 0 means that every request counts again; the store may charge for this.")
	flags.IntVar(&s.MaxRequests, "max-requests", 16, "The maximum number of requests that count objects at the same time.")
	flags.IntVar(&s.Concurrency, "concurrency", 8, "The maximum number of buckets that one request counts at the same time.")
	flags.IntVar(&s.Stores.Concurrency, "store-concurrency", 4, "The maximum number of buckets of one store that all requests together count at the same time.")
	flags.Float64Var(&s.Stores.RequestsPerSecond, "store-requests-per-second", 200,
		"The maximum number of requests per second to one store, for all counts together. Each count gets an equal share: this number divided by --store-concurrency.")
	flags.StringVar(&o.allowedEndpoints, "allowed-endpoints", "",
		"The endpoints that may be contacted, separated by commas: host names, *.suffix, IP addresses, CIDRs or *. Set the manager's flag to the same value.")
	flags.StringVar(&o.environmentNamespaces, "environment-credentials-namespaces", "",
		"The namespaces whose ObjectStores may use this program's own identity, separated by commas; * means all.")
	flags.StringVar(&o.namespaces, "namespaces", "",
		"The only namespaces whose buckets are counted, separated by commas. Empty means all. Set the manager's flag to the same value.")
	flags.IntVar(&o.verbosity, "v", 0, "The verbosity of the log, 0 to 7.")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return o, o.check()
}

// check splits the flags that are lists, and returns an error that names a wrong flag.
func (o *options) check() error {
	s := &o.server
	if s.CertFile == "" || s.KeyFile == "" {
		return errors.New("--tls-cert-file and --tls-private-key-file are required")
	}
	for name, value := range map[string]float64{
		"request-timeout":           s.RequestTimeout.Seconds(),
		"max-objects":               float64(s.MaxObjects),
		"max-requests":              float64(s.MaxRequests),
		"concurrency":               float64(s.Concurrency),
		"store-concurrency":         float64(s.Stores.Concurrency),
		"store-requests-per-second": s.Stores.RequestsPerSecond,
	} {
		if value <= 0 {
			return fmt.Errorf("--%s must be greater than 0", name)
		}
	}
	if o.verbosity < 0 || o.verbosity >= bodies {
		return fmt.Errorf("-v must be 0 to %d: at a higher verbosity, Secrets would be logged", bodies-1)
	}
	if s.MaxAge < 0 {
		return errors.New("--max-age must not be negative")
	}
	guard, err := egress.New(split(o.allowedEndpoints))
	if err != nil {
		return fmt.Errorf("--allowed-endpoints: %w", err)
	}
	s.Stores.Guard = guard
	s.Stores.EnvironmentNamespaces = split(o.environmentNamespaces)
	s.Namespaces = split(o.namespaces)
	return nil
}

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

func run(ctx context.Context, o *options) error {
	if err := setVerbosity(o.verbosity); err != nil {
		return err
	}
	ctrllog.SetLogger(klog.Background())
	listener, err := net.Listen("tcp", o.bindAddress)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	o.server.Listener = listener
	return o.server.Run(ctx)
}

func setVerbosity(v int) error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	return flags.Set("v", fmt.Sprint(v))
}
