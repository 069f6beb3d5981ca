// Command s3server is a real S3 server for tests and demos. It is versitygw with its
// data in a local directory, and listens only on loopback. It uses versitygw's IAM
// directory, so that it refuses wrong keys like a store in production.
//
// The root key pair comes from the environment (ROOT_ACCESS_KEY and
// ROOT_SECRET_KEY, versitygw's own names) and not from flags, which every user
// of the machine could read.
//
// After a restart with the same --dir and --listen, it is the same store at
// the same address.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	accessKeyEnv = "ROOT_ACCESS_KEY"
	secretKeyEnv = "ROOT_SECRET_KEY"

	// stopLimit limits the time of an orderly stop. Connections that are still open after
	// stopLimit belong to clients that hang; they are closed when the process ends.
	stopLimit = 3 * time.Second
)

// options are the command-line flags and the environment.
type options struct {
	dir           string
	listen        string
	readyFile     string
	region        string
	buckets       stringList
	dieWithParent bool
	accessKey     string
	secretKey     string
}

type stringList []string

func (l *stringList) String() string     { return strings.Join(*l, ",") }
func (l *stringList) Set(s string) error { *l = append(*l, s); return nil }

func main() {
	// The parent's ID is read before anything slow happens, so that even an early death of
	// the parent is noticed.
	parent := os.Getppid()
	o, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "s3server:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	if o.dieWithParent {
		ctx = untilOrphaned(ctx, parent)
	}
	context.AfterFunc(ctx, func() {
		time.AfterFunc(stopLimit, func() { os.Exit(0) })
	})
	err = run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "s3server:", err)
		os.Exit(1)
	}
}

func parseOptions(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("s3server", flag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", "", "directory of the store; created if it does not exist (required)")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "loopback address to listen on; port 0 picks a free one")
	flags.StringVar(&o.readyFile, "ready-file", "", "file to write the endpoint's URL to once the store answers")
	flags.StringVar(&o.region, "region", "us-east-1", "region that requests must be signed for")
	flags.Var(&o.buckets, "bucket", "bucket to create if it does not exist; may be repeated")
	flags.BoolVar(&o.dieWithParent, "die-with-parent", false, "stop when the process that started this one has ended")
	flags.Usage = func() {
		_, _ = fmt.Fprintf(flags.Output(), "usage: %s=... %s=... s3server --dir DIR [flags]\n", accessKeyEnv, secretKeyEnv)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.accessKey, o.secretKey = os.Getenv(accessKeyEnv), os.Getenv(secretKeyEnv)
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case o.dir == "":
		return o, errors.New("--dir is required")
	case o.accessKey == "" || o.secretKey == "":
		return o, fmt.Errorf("the root key pair is not set: set %s and %s", accessKeyEnv, secretKeyEnv)
	}
	return o, o.resolve()
}

// resolve checks the address and makes paths absolute, because the gateway
// changes the working directory.
func (o *options) resolve() error {
	host, _, err := net.SplitHostPort(o.listen)
	if err != nil {
		return fmt.Errorf("parsing --listen: %w", err)
	}
	// Names, even localhost, are refused, because it is not certain to which addresses they
	// resolve.
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("--listen %s is not a loopback address: use 127.0.0.1 or [::1]", o.listen)
	}
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return fmt.Errorf("resolving --dir: %w", err)
	}
	if o.readyFile != "" {
		if o.readyFile, err = filepath.Abs(o.readyFile); err != nil {
			return fmt.Errorf("resolving --ready-file: %w", err)
		}
	}
	return nil
}

// untilOrphaned returns a context that also ends when the parent process has ended.
func untilOrphaned(ctx context.Context, parent int) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for os.Getppid() == parent {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return ctx
}
