// Package e2e runs the manager as it is shipped, with the rights it is shipped
// with, against a real S3 server that is stopped and started again.
//
// The programs are bin/manager and bin/s3server (make build s3server), or what
// MANAGER and S3SERVER name. The control plane is envtest's, as for the
// controller's own suite.
package e2e

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gexec"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/yaml"

	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
)

const (
	accessKey = "E2EROOTKEY"
	secretKey = "e2e-root-secret-nobody-may-see"
	bucket    = "photos"

	wrongSecret = "not-the-secret"
	unknownKey  = "NOBODYSKEY"
)

var (
	cfg *rest.Config
	api client.Client
)

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "StorageBucket end to end")
}

var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter)))

	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(storagev1alpha1.AddToScheme(scheme)).To(Succeed())
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{fromRoot("config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	var err error
	cfg, err = env.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	api, err = client.New(cfg, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
})

func fromRoot(path ...string) string {
	return filepath.Join(append([]string{"..", ".."}, path...)...)
}

// program is the path of a built program.
func program(env, name string) string {
	GinkgoHelper()
	path := os.Getenv(env)
	if path == "" {
		path = fromRoot("bin", name)
	}
	Expect(path).To(BeARegularFile(), "run make build s3server, or set "+env)
	return path
}

// store is an S3 server that keeps its directory and its address over stops.
type store struct {
	dir      string
	endpoint string
	session  *gexec.Session
}

func startStore() *store {
	GinkgoHelper()
	s := &store{dir: GinkgoT().TempDir()}
	s.start("127.0.0.1:0")
	return s
}

func (s *store) start(listen string) {
	GinkgoHelper()
	ready := filepath.Join(s.dir, "ready")
	cmd := exec.Command(program("S3SERVER", "s3server"), "--dir", s.dir, "--listen", listen,
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

// restart brings the store back at its old address.
func (s *store) restart() {
	GinkgoHelper()
	u, err := url.Parse(s.endpoint)
	Expect(err).NotTo(HaveOccurred())
	s.start(u.Host)
}

// launch starts a process and sees to its end.
func launch(cmd *exec.Cmd) *gexec.Session {
	GinkgoHelper()
	session, err := gexec.Start(cmd, GinkgoWriter, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		session.Signal(syscall.SIGTERM)
		Eventually(session).Should(gexec.Exit())
	})
	return session
}

// startManager runs the manager for one namespace, with a service account that
// has the shipped role and nothing else.
func startManager(ctx context.Context, namespace string) *gexec.Session {
	GinkgoHelper()
	kubeconfig := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(clientcmd.WriteToFile(kubeconfigFor(grantRole(ctx, namespace)), kubeconfig)).To(Succeed())
	cmd := exec.Command(program("MANAGER", "manager"), "--leader-elect=false",
		"--health-probe-bind-address=0", "--namespaces="+namespace, "--zap-log-level=9")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	return launch(cmd)
}

// grantRole makes a service account with config/rbac/role.yaml and returns a
// token for it.
func grantRole(ctx context.Context, namespace string) string {
	GinkgoHelper()
	content, err := os.ReadFile(fromRoot("config", "rbac", "role.yaml"))
	Expect(err).NotTo(HaveOccurred())
	var role rbacv1.ClusterRole
	Expect(yaml.UnmarshalStrict(content, &role)).To(Succeed())
	role.Name = namespace
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "manager"}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "manager"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: account.Name}},
	}
	for _, obj := range []client.Object{&role, account, binding} {
		Expect(api.Create(ctx, obj)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(api.Delete(ctx, obj))).To(Succeed()) })
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))}}
	Expect(api.SubResource("token").Create(ctx, account, request)).To(Succeed())
	return request.Status.Token
}

func kubeconfigFor(token string) clientcmdapi.Config {
	GinkgoHelper()
	ca := cfg.CAData
	if len(ca) == 0 {
		var err error
		ca, err = os.ReadFile(cfg.CAFile)
		Expect(err).NotTo(HaveOccurred())
	}
	block, _ := pem.Decode(ca)
	Expect(block).NotTo(BeNil(), "the API server's CA")
	const name = "e2e"
	return clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: cfg.Host, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
}

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "stb-e2e-"}}
	Expect(api.Create(ctx, ns)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(api.DeleteAllOf(ctx, &storagev1alpha1.StorageBucket{}, client.InNamespace(ns.Name))).To(Succeed())
		Expect(api.Delete(ctx, ns)).To(Succeed())
	})
	return ns.Name
}

func newSecret(namespace, id, key string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "credentials"},
		StringData: map[string]string{
			storagev1alpha1.AccessKeyIDKey:     id,
			storagev1alpha1.SecretAccessKeyKey: key,
		},
	}
}

func newBucket(namespace, endpoint, name string, interval time.Duration) *storagev1alpha1.StorageBucket {
	return &storagev1alpha1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "photos"},
		Spec: storagev1alpha1.StorageBucketSpec{
			Endpoint:             endpoint,
			Bucket:               name,
			CredentialsSecretRef: storagev1alpha1.SecretReference{Name: "credentials"},
			ProbeInterval:        metav1.Duration{Duration: interval},
		},
	}
}

// healthy gives the "Status Reason" of the Healthy condition.
func healthy(ctx context.Context, b *storagev1alpha1.StorageBucket) func() string {
	return func() string {
		var got storagev1alpha1.StorageBucket
		if err := api.Get(ctx, client.ObjectKeyFromObject(b), &got); err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(got.Status.Conditions, storagev1alpha1.ConditionHealthy)
		if c == nil {
			return ""
		}
		return fmt.Sprintf("%s %s", c.Status, c.Reason)
	}
}

var _ = Describe("The manager with a real store", func() {
	var (
		namespace string
		s         *store
		manager   *gexec.Session
	)
	BeforeEach(func(ctx context.Context) {
		namespace = newNamespace(ctx)
		s = startStore()
		manager = startManager(ctx, namespace)
	})
	AfterEach(func() {
		Expect(manager.ExitCode()).To(Equal(-1), "the manager ended by itself")
		Eventually(manager.Terminate()).Should(gexec.Exit(0))
		Expect(manager.Err).To(gbytes.Say("Starting workers"))
		for what, text := range map[string]string{
			"a right is missing":         "forbidden",
			"the key ID is in the log":   accessKey,
			"the secret is in the log":   secretKey,
			"the wrong secret is in it":  wrongSecret,
			"an unknown key is in it":    unknownKey,
			"the SDK's error is in it":   "api error",
			"an unhandled error is told": "Reconciler error",
		} {
			Expect(strings.Contains(string(manager.Err.Contents()), text)).To(BeFalse(), what)
		}
	})

	It("sees the store go and come back", func(ctx context.Context) {
		b := newBucket(namespace, s.endpoint, bucket, time.Second)
		Expect(api.Create(ctx, newSecret(namespace, accessKey, secretKey))).To(Succeed())
		Expect(api.Create(ctx, b)).To(Succeed())
		Eventually(healthy(ctx, b)).Should(Equal("True ProbeSucceeded"))
		for range 2 {
			s.stop()
			Eventually(healthy(ctx, b)).Should(Equal("False EndpointUnreachable"))
			s.restart()
			Eventually(healthy(ctx, b)).Should(Equal("True ProbeSucceeded"))
		}
	})

	DescribeTable("refuses wrong keys, and takes the right ones when they come",
		func(ctx context.Context, id, key string) {
			secret := newSecret(namespace, id, key)
			b := newBucket(namespace, s.endpoint, bucket, time.Hour)
			Expect(api.Create(ctx, secret)).To(Succeed())
			Expect(api.Create(ctx, b)).To(Succeed())
			Eventually(healthy(ctx, b)).Should(Equal("False InvalidCredentials"))
			secret.StringData = newSecret(namespace, accessKey, secretKey).StringData
			Expect(api.Update(ctx, secret)).To(Succeed())
			Eventually(healthy(ctx, b)).Should(Equal("True ProbeSucceeded"))
		},
		Entry("with a wrong secret", accessKey, wrongSecret),
		Entry("with an unknown key", unknownKey, secretKey),
	)

	It("says that a bucket is missing", func(ctx context.Context) {
		b := newBucket(namespace, s.endpoint, "no-such-bucket", time.Hour)
		Expect(api.Create(ctx, newSecret(namespace, accessKey, secretKey))).To(Succeed())
		Expect(api.Create(ctx, b)).To(Succeed())
		Eventually(healthy(ctx, b)).Should(Equal("False BucketNotFound"))
	})
})
