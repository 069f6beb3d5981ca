// Package rig starts programs for tests as separate processes: a real S3 server that
// keeps its data in a directory, and the manager as it is shipped.
package rig

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/onsi/gomega/gexec"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// The root key pair of every store is long and unusual, so that tests can search logs for
// it.
const (
	AccessKey = "RIGROOTKEY"
	SecretKey = "rig-root-secret-nobody-may-see"
)

// startLimit limits how long to wait until a new store answers.
const startLimit = 20 * time.Second

// FromRoot converts a path in the operator's module to a path relative to the test's
// package.
func FromRoot(path ...string) string {
	return filepath.Join(append([]string{"..", ".."}, path...)...)
}

// Program returns the path of a built program: the value of the environment variable if
// it is set, otherwise bin/name.
func Program(env, name string) (string, error) {
	path := os.Getenv(env)
	if path == "" {
		path = FromRoot("bin", name)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("there is no program %s: run make build s3server, or set %s", filepath.Base(path), env)
	}
	return path, nil
}

// Store is an S3 server that keeps its directory and its address when it is restarted.
type Store struct {
	// Endpoint is the URL of the store.
	Endpoint string
	// Session is the store's running process.
	Session *gexec.Session

	dir    string
	output io.Writer
}

// StartStore starts a store that keeps its data in the directory, at an unused address.
func StartStore(dir string, output io.Writer) (*Store, error) {
	s := &Store{dir: dir, output: output}
	return s, s.start("127.0.0.1:0")
}

// Restart starts a stopped store again at its previous address. While the store is stopped,
// the system may give its port to a connection of another program, so Restart tries again
// while the port is taken.
func (s *Store) Restart() error {
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		return err
	}
	tick, limit := time.NewTicker(100*time.Millisecond), time.After(startLimit)
	defer tick.Stop()
	for {
		err = s.start(u.Host)
		if err == nil || !strings.Contains(err.Error(), "address already in use") {
			return err
		}
		select {
		case <-tick.C:
		case <-limit:
			return err
		}
	}
}

// Stop shuts the store down gracefully.
func (s *Store) Stop() { <-s.Session.Terminate().Exited }

// Kill ends the store immediately, without a shutdown.
func (s *Store) Kill() { <-s.Session.Kill().Exited }

func (s *Store) start(listen string) error {
	program, err := Program("S3SERVER", "s3server")
	if err != nil {
		return err
	}
	ready := filepath.Join(s.dir, "ready")
	cmd := exec.Command(program, "--dir", s.dir, "--listen", listen, "--ready-file", ready, "--die-with-parent")
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	if s.Session, err = gexec.Start(cmd, s.output, s.output); err != nil {
		return fmt.Errorf("starting the store: %w", err)
	}
	return s.awaitReady(ready)
}

func (s *Store) awaitReady(file string) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(startLimit)
	for {
		select {
		case <-s.Session.Exited:
			return fmt.Errorf("the store ended: %s", s.Session.Err.Contents())
		case <-limit:
			return errors.New("the store did not become ready")
		case <-tick.C:
		}
		if content, err := os.ReadFile(file); err == nil {
			s.Endpoint = string(content)
			return os.Remove(file)
		}
	}
}

// Client returns a client with the root keys. It connects to the store directly, even if a
// test has put a proxy in front of the store.
func (s *Store) Client() *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(s.Endpoint), Region: "us-east-1", UsePathStyle: true, Retryer: aws.NopRetryer{},
		Credentials:                credentials.NewStaticCredentialsProvider(AccessKey, SecretKey, ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
	})
}

// StartManager starts the manager. The manager connects to the API server with the
// kubeconfig.
func StartManager(kubeconfig string, output io.Writer, args ...string) (*gexec.Session, error) {
	program, err := Program("MANAGER", "manager")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	session, err := gexec.Start(cmd, output, output)
	if err != nil {
		return nil, fmt.Errorf("starting the manager: %w", err)
	}
	return session, nil
}

// WriteKubeconfig writes a kubeconfig for a server; the certificates and the
// token may be empty.
func WriteKubeconfig(path, server string, ca []byte, token string) error {
	const name = "rig"
	err := clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: server, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, path)
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

// AuthorityOf returns the certificates that sign the certificate of an API server.
func AuthorityOf(cfg *rest.Config) ([]byte, error) {
	ca := cfg.CAData
	if len(ca) == 0 {
		var err error
		if ca, err = os.ReadFile(cfg.CAFile); err != nil {
			return nil, fmt.Errorf("reading the API server's certificates: %w", err)
		}
	}
	if block, _ := pem.Decode(ca); block == nil {
		return nil, errors.New("the API server's certificates are not PEM")
	}
	return ca, nil
}

// MakeBucket creates a bucket with the root keys.
func (s *Store) MakeBucket(ctx context.Context, name string) error {
	if _, err := s.Client().CreateBucket(ctx, &s3.CreateBucketInput{Bucket: &name}); err != nil {
		return fmt.Errorf("creating bucket %s: %w", name, err)
	}
	return nil
}
