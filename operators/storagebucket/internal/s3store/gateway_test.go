package s3store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/egress"
)

// gatewayPatience limits the time that the S3 server may take to start.
const gatewayPatience = 30 * time.Second

// gateway is a real S3 server (versitygw, see test/s3server) in a separate process. The
// first test that needs the server starts it.
type gateway struct {
	dir     string
	process *exec.Cmd
	// ended is closed when the process has ended.
	ended    chan struct{}
	endpoint string
}

var (
	theGateway   *gateway
	startGateway = sync.OnceValue(func() error {
		g, err := newGateway()
		theGateway = g
		return err
	})
	bucketsMade atomic.Int64
)

func TestMain(m *testing.M) {
	code := m.Run()
	if theGateway != nil {
		theGateway.stop()
	}
	os.Exit(code)
}

func newGateway() (*gateway, error) {
	program := os.Getenv("S3SERVER")
	if program == "" {
		program = filepath.Join("..", "..", "bin", "s3server")
	}
	if _, err := os.Stat(program); err != nil {
		return nil, errors.New("these tests need a real S3 server, which has not been built: run make s3server, or set S3SERVER to the path of a server")
	}
	dir, err := os.MkdirTemp("", "s3store-test-")
	if err != nil {
		return nil, err
	}
	g := &gateway{dir: dir, ended: make(chan struct{})}
	ready := filepath.Join(dir, "ready")
	g.process = exec.Command(program, "--dir", filepath.Join(dir, "store"), "--ready-file", ready, "--die-with-parent")
	g.process.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+testKeyID, "ROOT_SECRET_KEY="+testSecret)
	if err := g.process.Start(); err != nil {
		return nil, err
	}
	go func() { _ = g.process.Wait(); close(g.ended) }()
	tick, late := time.NewTicker(10*time.Millisecond), time.After(gatewayPatience)
	defer tick.Stop()
	for {
		if content, err := os.ReadFile(ready); err == nil {
			g.endpoint = string(content)
			return g, nil
		}
		select {
		case <-tick.C:
		case <-g.ended:
			return g, fmt.Errorf("the S3 server ended: %v", g.process.ProcessState)
		case <-late:
			return g, errors.New("the S3 server did not become ready")
		}
	}
}

func (g *gateway) stop() {
	_ = g.process.Process.Kill()
	<-g.ended
	_ = os.RemoveAll(g.dir)
}

// gatewayConfig returns a configuration for the real server, with generous limits.
func gatewayConfig(t *testing.T) Config {
	t.Helper()
	if err := startGateway(); err != nil {
		t.Fatal(err)
	}
	endpoint, err := ParseEndpoint(theGateway.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	guard, err := egress.New([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Endpoint: endpoint, Region: "us-east-1", PathStyle: true, Guard: guard, Limiter: NewLimiter(1e6, 16),
		Credentials: Credentials{AccessKeyID: testKeyID, SecretAccessKey: testSecret},
	}
}

func gatewayStore(t *testing.T) *Store { return storeFrom(t, gatewayConfig(t)) }

// newName returns a bucket name that no other test uses.
func newName(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("bucket-%d", bucketsMade.Add(1))
}

// newBucket creates a bucket, which is versioned on request.
func newBucket(t *testing.T, s *Store, versioned bool) string {
	t.Helper()
	bucket := newName(t)
	must(t, s.Create(t.Context(), bucket, CreateOptions{}))
	if versioned {
		must(t, versioning("Enabled").putInto(t.Context(), s, bucket))
	}
	return bucket
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// put writes an object whose content is its key; an object whose key ends in a slash is
// empty.
func put(t *testing.T, s *Store, bucket, key string) {
	t.Helper()
	must(t, write(t.Context(), s, bucket, key))
}

func write(ctx context.Context, s *Store, bucket, key string) error {
	content := key
	if strings.HasSuffix(key, "/") {
		content = ""
	}
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: strings.NewReader(content)})
	return err
}

// erase deletes the current version of an object.
func erase(ctx context.Context, s *Store, bucket, key string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	return err
}

// upload starts a multipart upload and leaves it unfinished.
func upload(ctx context.Context, s *Store, bucket, key string) error {
	_, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: &key})
	return err
}

// expectReason checks the reason of a failed call, and that the error contains nothing
// confidential.
func expectReason(t *testing.T, err error, want Reason) {
	t.Helper()
	if ReasonOf(err) != want {
		t.Errorf("error %v (%s), want %s", err, ReasonOf(err), want)
	}
	if err == nil {
		return
	}
	for _, secret := range []string{testKeyID, testSecret, testToken, "REQUEST-ID", "http:", "Signature"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q in %q", secret, err)
		}
	}
}
