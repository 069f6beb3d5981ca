package usage

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	usagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/usage/v1"
	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

const (
	accessKey   = "USAGEROOTKEY"
	secretKey   = "usage-root-secret-nobody-may-see"
	wrongSecret = "not-the-secret-of-usage"
	bucket      = "photos-bucket"
)

// store is an S3 server that keeps its directory and its address when it is restarted.
type store struct {
	dir      string
	endpoint string
	session  *gexec.Session
	client   *s3.Client
}

func startStore() *store {
	GinkgoHelper()
	s := &store{dir: GinkgoT().TempDir()}
	s.start("127.0.0.1:0")
	s.client = s3.New(s3.Options{
		BaseEndpoint: &s.endpoint, Region: "us-east-1", UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(accessKey, secretKey, ""),
	})
	return s
}

func (s *store) start(listen string) {
	GinkgoHelper()
	ready := filepath.Join(s.dir, "ready")
	cmd := exec.Command(program("S3SERVER", "bin", "s3server"), "--dir", s.dir, "--listen", listen,
		"--ready-file", ready, "--bucket", bucket, "--die-with-parent")
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+secretKey)
	s.session = launch(cmd)
	Eventually(func(g Gomega) {
		g.Expect(s.session.ExitCode()).To(Equal(-1), "the store ended")
		content, err := os.ReadFile(ready)
		g.Expect(err).NotTo(HaveOccurred())
		s.endpoint = string(content)
	}).Should(Succeed())
	Expect(os.Remove(ready)).To(Succeed())
}

func (s *store) stop() {
	GinkgoHelper()
	Eventually(s.session.Terminate()).Should(gexec.Exit(0))
}

// restart starts the store again at its previous address. While the store is stopped, the
// system may give its port to a connection of another program, so restart waits until the
// port is free.
func (s *store) restart() {
	GinkgoHelper()
	u, err := url.Parse(s.endpoint)
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error {
		l, err := net.Listen("tcp", u.Host)
		if err != nil {
			return err
		}
		return l.Close()
	}).Should(Succeed())
	s.start(u.Host)
}

func (s *store) put(ctx context.Context, key string, size int) {
	GinkgoHelper()
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(bucket), Key: &key, Body: bytes.NewReader(make([]byte, size)),
	})
	Expect(err).NotTo(HaveOccurred())
}

func (s *store) empty(ctx context.Context) {
	GinkgoHelper()
	out, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String(bucket)})
	Expect(err).NotTo(HaveOccurred())
	for _, o := range out.Contents {
		_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: o.Key})
		Expect(err).NotTo(HaveOccurred())
	}
}

// newNamespace creates a namespace for one spec. The cluster may have no controller that
// empties a deleted namespace, so the buckets are deleted here.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "usage-"}}
	Expect(api.Create(ctx, ns)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(api.DeleteAllOf(ctx, &storagev1.StorageBucket{}, client.InNamespace(ns.Name))).To(Succeed())
		Expect(client.IgnoreNotFound(api.Delete(ctx, ns))).To(Succeed())
	})
	return ns.Name
}

// newStore creates an ObjectStore, and a Secret of the same name for it.
func newStore(ctx context.Context, namespace, name, endpoint, secret string) {
	GinkgoHelper()
	Expect(api.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		StringData: map[string]string{storagev1.AccessKeyIDKey: accessKey, storagev1.SecretAccessKeyKey: secret},
	})).To(Succeed())
	Expect(api.Create(ctx, &storagev1.ObjectStore{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: storagev1.ObjectStoreSpec{
			Endpoint:    endpoint,
			Credentials: storagev1.Credentials{SecretRef: &storagev1.SecretReference{Name: name}},
		},
	})).To(Succeed())
}

// newBucket creates a StorageBucket, with its own name as the value of a label.
func newBucket(ctx context.Context, namespace, name, inStore string, change ...func(*storagev1.StorageBucketSpec)) {
	GinkgoHelper()
	b := &storagev1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": name}},
		Spec:       storagev1.StorageBucketSpec{BucketName: bucket, StoreRef: &storagev1.ObjectStoreReference{Name: inStore}},
	}
	for _, f := range change {
		f(&b.Spec)
	}
	Expect(api.Create(ctx, b)).To(Succeed())
}

// needControllers skips a spec if the plane runs no controllers, as with the profile api.
func needControllers(ctx context.Context) {
	GinkgoHelper()
	err := api.Get(ctx, client.ObjectKey{Namespace: "default", Name: "default"}, &corev1.ServiceAccount{})
	if apierrors.IsNotFound(err) {
		Skip("the plane has no controllers: run this suite against koboshi up --profile gc")
	}
	Expect(err).NotTo(HaveOccurred())
}

// tryKubectl runs koboshi's kubectl; the error contains what it prints to stderr.
func tryKubectl(args ...string) (string, error) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	Expect(clientcmd.WriteToFile(kubeconfigFor(clientcmdapi.AuthInfo{
		Token:             cfg.BearerToken,
		ClientCertificate: cfg.CertFile, ClientCertificateData: cfg.CertData,
		ClientKey: cfg.KeyFile, ClientKeyData: cfg.KeyData,
	}), kubeconfig)).To(Succeed())
	cmd := exec.Command(program("KOBOSHI", "..", "..", "bin", "koboshi"), append([]string{"kubectl"}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "KUBECACHEDIR="+filepath.Join(dir, "cache"))
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

func kubectl(args ...string) string {
	GinkgoHelper()
	out, err := tryKubectl(args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// usageOf requests the usage of one bucket.
func usageOf(namespace, name string) usagev1.BucketUsage {
	GinkgoHelper()
	var usage usagev1.BucketUsage
	Expect(json.Unmarshal([]byte(kubectl("get", "bucketusage", name, "-n", namespace, "-o", "json")), &usage)).To(Succeed())
	return usage
}

// through returns the status of a request through the API server.
func through(ctx context.Context, method, path string) int {
	GinkgoHelper()
	c, err := rest.HTTPClientFor(cfg)
	Expect(err).NotTo(HaveOccurred())
	return ask(ctx, c, method, strings.TrimSuffix(cfg.Host, "/")+path, nil)
}

// direct returns the status of a request to the usage server's own port.
func direct(ctx context.Context, path string, header http.Header) int {
	GinkgoHelper()
	roots := x509.NewCertPool()
	Expect(roots.AppendCertsFromPEM(server.caBundle)).To(BeTrue())
	c := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, ServerName: account + "." + systemNamespace + ".svc", MinVersion: tls.VersionTLS12},
	}}
	return ask(ctx, c, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", server.port, path), header)
}

func ask(ctx context.Context, c *http.Client, method, target string, header http.Header) int {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, method, target, nil)
	Expect(err).NotTo(HaveOccurred())
	if header != nil {
		request.Header = header
	}
	response, err := c.Do(request)
	Expect(err).NotTo(HaveOccurred())
	Expect(response.Body.Close()).To(Succeed())
	return response.StatusCode
}

func bearer(token string) http.Header {
	return http.Header{"Authorization": {"Bearer " + token}}
}
