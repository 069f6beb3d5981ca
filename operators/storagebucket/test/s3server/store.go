package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3api"
)

const (
	// bindAttempts limits how many unused ports are tried. Another program may take a
	// port before the gateway listens on it.
	bindAttempts = 5

	// answerLimit limits how long to wait for the first successful response.
	answerLimit = 10 * time.Second
)

// run serves until the context ends.
func run(ctx context.Context, o options) error {
	if o.readyFile != "" {
		// A file left by an earlier run must not be mistaken for the file of this run.
		if err := os.Remove(o.readyFile); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("removing an old ready file: %w", err)
		}
	}
	_, port, err := net.SplitHostPort(o.listen)
	if err != nil {
		return fmt.Errorf("parsing the address: %w", err)
	}
	if port != "0" {
		return serve(ctx, o, o.listen)
	}
	for attempt := 1; ; attempt++ {
		address, err := freeAddress(o.listen)
		if err != nil {
			return err
		}
		err = serve(ctx, o, address)
		if attempt == bindAttempts || !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
	}
}

// freeAddress picks an unused port, because the gateway can neither be given a listener
// nor report its port. The port is free for a moment before the gateway listens on it;
// run handles the case that another program takes it.
func freeAddress(listen string) (string, error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return "", fmt.Errorf("picking a free port: %w", err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		return "", fmt.Errorf("picking a free port: %w", err)
	}
	return address, nil
}

// serve runs the gateway at an address until the context ends.
func serve(ctx context.Context, o options, address string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	backend, err := openBackend(o.dir)
	if err != nil {
		return err
	}
	listening := make(chan struct{})
	prepared := make(chan error, 1)
	go func() {
		select {
		case <-listening:
			prepared <- prepare(ctx, o, "http://"+address)
		case <-ctx.Done():
			prepared <- nil
		}
	}()
	stopped := make(chan error, 1)
	go func() { stopped <- embedgw.RunVersityGW(ctx, backend, gatewayConfig(o, address, listening)) }()

	select {
	case err := <-stopped:
		return err
	case err := <-prepared:
		if err != nil && ctx.Err() == nil {
			cancel()
			return errors.Join(err, <-stopped)
		}
		return <-stopped
	}
}

// openBackend opens the directory. Metadata is kept in files next to the data, because not
// every file system has extended attributes. Old versions of objects are kept in a separate
// directory, because the gateway needs one to support versioning.
func openBackend(dir string) (*posix.Posix, error) {
	data, metadata, versions := filepath.Join(dir, "data"), filepath.Join(dir, "metadata"), filepath.Join(dir, "versions")
	for _, d := range []string{data, metadata, versions, iamDir(dir)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, fmt.Errorf("creating the store's directory: %w", err)
		}
	}
	sidecar, err := meta.NewSideCar(metadata)
	if err != nil {
		return nil, fmt.Errorf("opening the metadata: %w", err)
	}
	backend, err := posix.New(data, sidecar, posix.PosixOpts{ValidateBucketNames: true, VersioningDir: versions})
	if err != nil {
		return nil, fmt.Errorf("opening the data: %w", err)
	}
	return backend, nil
}

func iamDir(dir string) string { return filepath.Join(dir, "iam") }

func gatewayConfig(o options, address string, listening chan<- struct{}) *embedgw.Config {
	return &embedgw.Config{
		RootUserAccess:    o.accessKey,
		RootUserSecret:    o.secretKey,
		Region:            o.region,
		Ports:             []string{address},
		MaxConnections:    1024,
		MaxRequests:       512,
		MultipartMaxParts: 10000,
		Quiet:             true,
		// Without an IAM back end, requests with an unknown key get 404.
		IAMDir:          iamDir(o.dir),
		IAMCacheDisable: true,
		S3Options:       []s3api.Option{s3api.WithOnListen(func() { close(listening) })},
	}
}

// prepare creates the buckets and announces the store. The store is ready when
// the first request has succeeded.
func prepare(ctx context.Context, o options, endpoint string) error {
	client := s3.New(s3.Options{
		BaseEndpoint: aws.String(endpoint),
		Region:       o.region,
		UsePathStyle: true,
		Retryer:      aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: o.accessKey, SecretAccessKey: o.secretKey}, nil
		}),
	})
	if err := awaitAnswer(ctx, client); err != nil {
		return err
	}
	for _, bucket := range o.buckets {
		_, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(bucket)})
		if exists := new(types.BucketAlreadyOwnedByYou); err != nil && !errors.As(err, &exists) {
			return fmt.Errorf("creating bucket %s: %w", bucket, err)
		}
	}
	if o.readyFile == "" {
		_, err := fmt.Fprintln(os.Stdout, endpoint)
		return err
	}
	return writeAtomically(o.readyFile, endpoint)
}

func awaitAnswer(ctx context.Context, client *s3.Client) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := client.ListBuckets(ctx, &s3.ListBucketsInput{})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the store to answer: %w", err)
		case <-tick.C:
		}
	}
}

// writeAtomically writes a file so that no reader sees an incomplete file.
func writeAtomically(path, content string) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing the ready file: %w", err)
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing the ready file: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
