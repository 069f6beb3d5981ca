package main

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

const patience = 15 * time.Second

// TestMain lets the test binary act as the program, because the gateway can
// run only once per process.
func TestMain(m *testing.M) {
	if os.Getenv("S3SERVER_TEST_AS_PROGRAM") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type server struct {
	cmd      *exec.Cmd
	endpoint string
}

func start(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready")
	cmd := exec.Command(os.Args[0], append([]string{"--dir", dir, "--ready-file", ready}, args...)...)
	cmd.Env = append(os.Environ(), "S3SERVER_TEST_AS_PROGRAM=1", accessKeyEnv+"=root", secretKeyEnv+"=root-secret")
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	tick, late := time.NewTicker(10*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for {
		if content, err := os.ReadFile(ready); err == nil {
			return &server{cmd: cmd, endpoint: string(content)}
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("the store did not become ready")
		}
	}
}

func (s *server) host(t *testing.T) string {
	t.Helper()
	u, err := url.Parse(s.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// stop stops the program gracefully and returns how long the program took to stop.
func (s *server) stop(t *testing.T, sig os.Signal) time.Duration {
	t.Helper()
	begin := time.Now()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
	return time.Since(begin)
}

func (s *server) client(id, key string) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(s.endpoint), Region: "us-east-1", UsePathStyle: true, Retryer: aws.NopRetryer{},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: id, SecretAccessKey: key}, nil
		}),
	})
}

// head checks a bucket with a list request, and returns "ok" or the error code. A
// response to HEAD would have no body, and so no code.
func (s *server) head(t *testing.T, bucket, id, key string) string {
	t.Helper()
	_, err := s.client(id, key).ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket)})
	var api smithy.APIError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &api):
		return api.ErrorCode()
	default:
		return err.Error()
	}
}

func TestStoreRefusesWrongKeysAndKnowsItsBuckets(t *testing.T) {
	s := start(t, t.TempDir(), "--bucket", "photos", "--bucket", "films")
	for _, tc := range []struct{ bucket, id, key, want string }{
		{"photos", "root", "root-secret", "ok"},
		{"films", "root", "root-secret", "ok"},
		{"others", "root", "root-secret", "NoSuchBucket"},
		{"photos", "root", "wrong", "SignatureDoesNotMatch"},
		{"photos", "nobody", "root-secret", "InvalidAccessKeyId"},
	} {
		if got := s.head(t, tc.bucket, tc.id, tc.key); got != tc.want {
			t.Errorf("%+v: got %s", tc, got)
		}
	}
}

func TestStoreComesBackAtItsAddressWithItsBuckets(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, "--bucket", "photos")
	address := s.host(t)
	quickest := map[os.Signal]time.Duration{syscall.SIGTERM: patience, syscall.SIGINT: patience}
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGTERM, syscall.SIGINT} {
		quickest[sig] = min(quickest[sig], s.stop(t, sig))
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			t.Fatal("the stopped program still listens on its port")
		}
		s = start(t, dir, "--listen", address)
		if got := s.head(t, "photos", "root", "root-secret"); got != "ok" {
			t.Errorf("after a restart: %s", got)
		}
	}
	// On a busy machine, a single stop may reach the limit.
	for sig, took := range quickest {
		if took > stopLimit {
			t.Errorf("after %v, the quickest stop took %v", sig, took)
		}
	}
}

func TestVersionsAreKeptOverARestart(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, "--bucket", "photos")
	bucket, key := aws.String("photos"), aws.String("cat")
	client := s.client("root", "root-secret")
	if _, err := client.PutBucketVersioning(t.Context(), &s3.PutBucketVersioningInput{
		Bucket:                  bucket,
		VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatusEnabled},
	}); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"one", "two"} {
		if _, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: bucket, Key: key, Body: strings.NewReader(body)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: bucket, Key: key}); err != nil {
		t.Fatal(err)
	}
	s.stop(t, syscall.SIGTERM)
	s = start(t, dir)
	list, err := s.client("root", "root-secret").ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: bucket})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Versions) != 2 || len(list.DeleteMarkers) != 1 {
		t.Errorf("%d versions and %d delete markers, want 2 and 1", len(list.Versions), len(list.DeleteMarkers))
	}
}

func TestTakenPortIsAnError(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	cmd := exec.Command(os.Args[0], "--dir", t.TempDir(), "--listen", l.Addr().String())
	cmd.Env = append(os.Environ(), "S3SERVER_TEST_AS_PROGRAM=1", accessKeyEnv+"=root", secretKeyEnv+"=root-secret")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "address already in use") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Setenv(accessKeyEnv, "root")
	t.Setenv(secretKeyEnv, "root-secret")
	for _, args := range [][]string{
		{}, {"--dir", "d", "extra"}, {"--dir", "d", "--listen", "9000"},
		{"--dir", "d", "--listen", ":9000"}, {"--dir", "d", "--listen", "0.0.0.0:9000"},
		{"--dir", "d", "--listen", "192.0.2.1:9000"}, {"--dir", "d", "--listen", "localhost:9000"},
	} {
		if _, err := parseOptions(args); err == nil {
			t.Errorf("%q was accepted", args)
		}
	}
	for _, listen := range []string{"127.0.0.1:0", "127.0.0.9:9000", "[::1]:9000"} {
		if _, err := parseOptions([]string{"--dir", "d", "--listen", listen}); err != nil {
			t.Errorf("%s: %v", listen, err)
		}
	}
	t.Setenv(secretKeyEnv, "")
	if _, err := parseOptions([]string{"--dir", "d"}); err == nil {
		t.Error("options without a key pair were accepted")
	}
}
