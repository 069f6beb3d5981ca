// Package command implements the program etcd. The package parses upstream's flags with upstream's
// code, and runs a server that can be stopped without ending the process.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/logutil"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/pkg/v3/flags"
	"go.etcd.io/etcd/server/v3/config"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/koboshi-dev/koboshi/internal/controlplane/storage"
)

// These are the exit codes of upstream's program.
const (
	exitOK    = 0
	exitError = 1
	exitUsage = 2
)

const (
	// A single member elects itself after one election timeout, which is up to
	// a second with etcd's defaults.
	tick     = 10  // ms
	election = 100 // ms

	// By default, etcd reserves two segments of 64 MB for its log, but tests write little.
	segment = 2 << 20 // bytes
)

// Tell answers --help and --version with upstream's text and ends the process.
func Tell(args []string) {
	etcdmain.Main(append([]string{"etcd"}, args...))
}

// A Command is one run of the program etcd.
type Command struct {
	config *embed.Config
	stderr io.Writer
	server atomic.Pointer[etcdserver.EtcdServer] // set once the server is running
}

// Parse reads the command line. If there is an error, Parse reports it on
// stderr and returns an exit code.
func Parse(args []string, stderr io.Writer) (*Command, int) {
	cfg, err := parse(args, stderr)
	if errors.Is(err, errUsage) {
		return nil, exitUsage
	}
	if err == nil {
		err = tune(cfg, stderr)
	}
	c := &Command{config: cfg, stderr: stderr}
	if err != nil {
		return nil, c.failed(err)
	}
	return c, exitOK
}

// URLs lists the addresses at which clients may connect: the addresses on which
// the server listens (at least one) and the addresses that it advertises.
func (c *Command) URLs() (urls []string) {
	for _, u := range slices.Concat(c.config.ListenClientUrls, c.config.AdvertiseClientUrls) {
		urls = append(urls, strings.TrimRight(u.String(), "/"))
	}
	return urls
}

// Fresh reports whether the data folder is still empty or missing.
func (c *Command) Fresh() bool {
	entries, err := os.ReadDir(c.config.Dir)
	return err != nil || len(entries) == 0
}

// Shortcut makes client call the server directly if the server is running.
func (c *Command) Shortcut(client *clientv3.Client) {
	if s := c.server.Load(); s != nil {
		storage.Shortcut(s, client)
	}
}

// closeTimeout limits the time that Run waits for a stopped etcd to close the
// connections of its clients.
const closeTimeout = time.Second

// Run serves until ctx ends and returns the exit code. The server stops as abruptly as in a crash,
// but nothing is lost: the write-ahead log is complete at every moment.
func (c *Command) Run(ctx context.Context) int {
	e, err := embed.StartEtcd(c.config)
	if err != nil {
		return c.failed(err)
	}
	c.server.Store(e.Server)
	select {
	case <-ctx.Done():
		e.Server.HardStop()
		closed := make(chan struct{})
		go func() {
			e.Close() // Close first waits for connections, then cuts them
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(closeTimeout):
		}
		return exitOK
	case err := <-e.Err():
		return c.failed(err)
	case <-e.Server.StopNotify():
		return exitOK
	}
}

func (c *Command) failed(err error) int {
	_, _ = fmt.Fprintf(c.stderr, "etcd: %v\n", err)
	return exitError
}

// tune sets defaults for a single member on this machine. Settings that the user has made are not
// changed.
func tune(cfg *embed.Config, stderr io.Writer) error {
	if !cfg.FlagsExplicitlySet["heartbeat-interval"] && !cfg.FlagsExplicitlySet["election-timeout"] {
		cfg.TickMs, cfg.ElectionMs = tick, election
	}
	wal.SegmentSizeBytes = segment
	if cfg.FlagsExplicitlySet["log-outputs"] {
		return nil
	}
	// This is upstream's default logger, but it writes to the given stderr.
	level, err := zapcore.ParseLevel(cfg.LogLevel)
	if err != nil {
		return err
	}
	encoder := zapcore.NewJSONEncoder(logutil.DefaultZapLoggerConfig.EncoderConfig)
	if cfg.LogFormat == "console" {
		encoder = zapcore.NewConsoleEncoder(logutil.DefaultZapLoggerConfig.EncoderConfig)
	}
	core := zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(stderr)), level)
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(core, zap.AddCaller()))
	return nil
}

var errUsage = errors.New("wrong flags")

// parse reads flags and ETCD_ variables into an embed.Config, like upstream's parse
// (etcdmain/config.go of v3.7), which is not exported.
func parse(args []string, stderr io.Writer) (cfg *embed.Config, err error) {
	cfg = embed.NewConfig()
	defaultCluster := cfg.InitialCluster
	fs := flag.NewFlagSet("etcd", flag.ContinueOnError)
	fs.SetOutput(stderr)
	own := register(fs, cfg)
	if fs.Parse(args) != nil {
		return nil, errUsage
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("%q is not a valid flag", fs.Arg(0))
	}
	if own.file == "" {
		own.file = os.Getenv(flags.FlagToEnv("ETCD", "config-file"))
	}
	if own.file == "" {
		err := flags.SetFlagsFromEnv(zap.NewNop(), "ETCD", fs)
		if err != nil {
			return nil, err
		}
		own.fill(cfg, fs)
		err = cfg.Validate()
		if err != nil {
			return nil, err
		}
	} else if cfg, err = embed.ConfigFromFile(own.file); err != nil {
		return nil, err // as in upstream, other flags are then ignored
	}
	cfg.V2Deprecation = config.V2DeprDefault
	if cfg.WarningUnaryRequestDuration == 0 {
		cfg.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	}
	if _, err := cfg.UpdateDefaultClusterFromName(defaultCluster); err != nil && len(cfg.AdvertisePeerUrls) == 0 {
		return nil, err
	}
	if cfg.Dir == "" {
		cfg.Dir = cfg.Name + ".etcd"
	}
	return cfg, nil
}

// ownFlags holds the flags of upstream's program that package embed does not
// define.
type ownFlags struct {
	file     string
	state    *flags.SelectiveStringValue
	fallback *flags.SelectiveStringValue
	version  bool
}

func register(fs *flag.FlagSet, cfg *embed.Config) *ownFlags {
	own := &ownFlags{
		state:    flags.NewSelectiveStringValue(embed.ClusterStateFlagNew, embed.ClusterStateFlagExisting),
		fallback: flags.NewSelectiveStringValue("exit"),
	}
	cfg.AddFlags(fs)
	fs.StringVar(&own.file, "config-file", "", "")
	fs.Var(own.state, "initial-cluster-state", "")
	fs.Var(own.fallback, "discovery-fallback", "")
	fs.Var(flags.NewSelectiveStringsValue(string(config.V2Depr1WriteOnly), string(config.V2Depr1WriteOnlySkipCheck),
		string(config.V2Depr1WriteOnlyDrop), string(config.V2Depr2Gone)), "v2-deprecation", "")
	fs.BoolVar(&own.version, "version", false, "")
	for _, name := range []string{
		"cluster-active-size", "cluster-remove-delay", "cluster-sync-interval", "config", "force", "max-result-buffer",
		"max-retry-attempts", "peer-heartbeat-interval", "peer-election-timeout", "retry-interval", "snapshot", "v", "vv",
	} {
		fs.Var(&flags.IgnoredFlag{Name: name}, name, "")
	}
	return own
}

// fill completes the config with the flag values that parsing does not write to it.
func (own *ownFlags) fill(cfg *embed.Config, fs *flag.FlagSet) {
	cfg.ListenPeerUrls = flags.UniqueURLsFromFlag(fs, "listen-peer-urls")
	cfg.AdvertisePeerUrls = flags.UniqueURLsFromFlag(fs, "initial-advertise-peer-urls")
	cfg.ListenClientUrls = flags.UniqueURLsFromFlag(fs, "listen-client-urls")
	cfg.ListenClientHttpUrls = flags.UniqueURLsFromFlag(fs, "listen-client-http-urls")
	cfg.AdvertiseClientUrls = flags.UniqueURLsFromFlag(fs, "advertise-client-urls")
	cfg.ListenMetricsUrls = flags.UniqueURLsFromFlag(fs, "listen-metrics-urls")
	cfg.DiscoveryCfg.Endpoints = flags.UniqueStringsFromFlag(fs, "discovery-endpoints")
	cfg.CORS = flags.UniqueURLsMapFromFlag(fs, "cors")
	cfg.HostWhitelist = flags.UniqueStringsMapFromFlag(fs, "host-whitelist")
	cfg.ClientTLSInfo.AllowedHostnames = flags.StringsFromFlag(fs, "client-cert-allowed-hostname")
	cfg.PeerTLSInfo.AllowedCNs = flags.StringsFromFlag(fs, "peer-cert-allowed-cn")
	cfg.PeerTLSInfo.AllowedHostnames = flags.StringsFromFlag(fs, "peer-cert-allowed-hostname")
	cfg.CipherSuites = flags.StringsFromFlag(fs, "cipher-suites")
	cfg.MaxConcurrentStreams = flags.Uint32FromFlag(fs, "max-concurrent-streams")
	cfg.LogOutputs = flags.UniqueStringsFromFlag(fs, "log-outputs")
	cfg.ClusterState = own.state.String()
	if flags.IsSet(fs, "listen-client-urls") && !flags.IsSet(fs, "advertise-client-urls") {
		cfg.AdvertiseClientUrls = nil // so that Validate names the missing flag
	}
	discovered := cfg.DNSCluster != "" || cfg.DNSClusterServiceName != "" || len(cfg.DiscoveryCfg.Endpoints) > 0
	if discovered && !flags.IsSet(fs, "initial-cluster") {
		cfg.InitialCluster = ""
	}
	fs.Visit(func(f *flag.Flag) { cfg.FlagsExplicitlySet[f.Name] = true })
}
