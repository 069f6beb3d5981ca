// Package usage runs the shipped usage server with its shipped rights. An API server passes
// requests on to the usage server, which counts objects in a real S3 server.
//
// The programs are bin/usage-server and bin/s3server (make build s3server), or those that
// USAGE_SERVER and S3SERVER name. The tests also run the kubectl of bin/koboshi, or of the
// program that KOBOSHI names. The control plane comes from envtest, as in the other test
// suites. The control plane must have a front proxy, which koboshi has but stock envtest
// does not. The specs that need controllers are skipped if the plane runs none; `koboshi up
// --profile gc` runs them.
package usage

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	usagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/usage/v1"
	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
)

const (
	// systemNamespace is the namespace of the manifests in config/usage.
	systemNamespace = "storagebucket-system"
	account         = "storagebucket-usage"

	// maxObjects is the limit of the counts in these specs.
	maxObjects = 20
)

var (
	cfg    *rest.Config
	api    client.Client
	server *usageServer
)

func TestUsage(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "StorageBucket usage server")
}

var _ = BeforeSuite(func(ctx context.Context) {
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter)))

	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, storagev1.AddToScheme, usagev1.AddToScheme, apiregistrationv1.AddToScheme,
	} {
		Expect(add(scheme)).To(Succeed())
	}
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
	needFrontProxy(ctx)

	installManifests(ctx)
	server = startServer(ctx)
	aggregate(ctx, server)
})

// needFrontProxy skips the suite if the plane cannot pass requests on.
func needFrontProxy(ctx context.Context) {
	GinkgoHelper()
	var published corev1.ConfigMap
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication"}
	Eventually(func() error { return api.Get(ctx, key, &published) }).Should(Succeed())
	if published.Data["requestheader-client-ca-file"] == "" {
		Skip("the API server has no front proxy: run this suite against koboshi")
	}
}

func fromRoot(path ...string) string {
	return filepath.Join(append([]string{"..", ".."}, path...)...)
}

// program returns the absolute path of a built program.
func program(env string, path ...string) string {
	GinkgoHelper()
	p := os.Getenv(env)
	if p == "" {
		p = fromRoot(path...)
	}
	Expect(p).To(BeARegularFile(), "run make build s3server, or set "+env)
	absolute, err := filepath.Abs(p)
	Expect(err).NotTo(HaveOccurred())
	return absolute
}

// installManifests creates everything in config/usage except the program itself.
func installManifests(ctx context.Context) {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	Expect(client.IgnoreAlreadyExists(api.Create(ctx, ns))).To(Succeed())
	for _, file := range []string{"rbac.yaml", "viewer_role.yaml"} {
		for _, object := range manifests(file) {
			create(ctx, object)
		}
	}
}

// manifests reads a file of config/usage.
func manifests(file string) []*unstructured.Unstructured {
	GinkgoHelper()
	content, err := os.ReadFile(fromRoot("config", "usage", file))
	Expect(err).NotTo(HaveOccurred())
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var all []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		if decoder.Decode(object) != nil {
			Expect(all).NotTo(BeEmpty())
			return all
		}
		all = append(all, object)
	}
}

// create creates an object, and deletes it at the end of the suite or spec.
func create(ctx context.Context, object client.Object) {
	GinkgoHelper()
	Expect(api.Create(ctx, object)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(client.IgnoreNotFound(api.Delete(ctx, object))).To(Succeed())
	})
}

// usageServer is the program under test.
type usageServer struct {
	session  *gexec.Session
	port     int32
	caBundle []byte
	// ready is the time that the server took to answer.
	ready time.Duration
}

var serving = regexp.MustCompile(`Serving securely on \S*:(\d+)`)

// startServer runs the program as its service account, with the highest
// possible verbosity.
func startServer(ctx context.Context) *usageServer {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	s := &usageServer{caBundle: issueCertificate(dir)}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	Expect(clientcmd.WriteToFile(kubeconfigFor(clientcmdapi.AuthInfo{Token: tokenFor(ctx, systemNamespace, account)}), kubeconfig)).To(Succeed())
	cmd := exec.Command(program("USAGE_SERVER", "bin", "usage-server"),
		"--kubeconfig="+kubeconfig, "--bind-address=127.0.0.1:0", "-v=7",
		"--tls-cert-file="+filepath.Join(dir, "tls.crt"), "--tls-private-key-file="+filepath.Join(dir, "tls.key"),
		"--allowed-endpoints=127.0.0.1", "--max-objects="+strconv.Itoa(maxObjects), "--max-age=0")
	start := time.Now()
	s.session = launch(cmd)
	Eventually(func(g Gomega) {
		g.Expect(s.session.ExitCode()).To(Equal(-1), "the usage server ended")
		found := serving.FindSubmatch(s.session.Err.Contents())
		g.Expect(found).To(HaveLen(2))
		port, err := strconv.ParseInt(string(found[1]), 10, 32)
		g.Expect(err).NotTo(HaveOccurred())
		s.port = int32(port)
	}).WithPolling(5 * time.Millisecond).Should(Succeed())
	s.ready = time.Since(start)
	return s
}

// launch starts a process, and stops it at the end of the suite or spec.
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

// aggregate makes the API server pass requests on to the usage server, which runs on the
// same machine. The Service is of type ExternalName, and the API server resolves it to
// localhost.
func aggregate(ctx context.Context, s *usageServer) {
	GinkgoHelper()
	create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: account},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	})
	var service apiregistrationv1.APIService
	Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(manifests("apiservice.yaml")[0].Object, &service)).To(Succeed())
	service.Spec.CABundle, service.Spec.Service.Port = s.caBundle, &s.port
	create(ctx, &service)
	Eventually(func(g Gomega) {
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(&service), &service)).To(Succeed())
		g.Expect(service.Status.Conditions).To(ContainElement(And(
			HaveField("Type", apiregistrationv1.Available), HaveField("Status", apiregistrationv1.ConditionTrue))))
	}).Should(Succeed())
	// The group is available a moment before requests for it are passed on.
	Eventually(func() error {
		return api.List(ctx, &usagev1.BucketUsageList{}, client.InNamespace("default"))
	}).Should(Or(Succeed(), MatchError(meta.IsNoMatchError, "no match")))
	Eventually(func() error { return api.List(ctx, &usagev1.BucketUsageList{}, client.InNamespace("default")) }).Should(Succeed())
	// kubectl finds the group in a list of all groups, which the API server updates later.
	Eventually(func() error {
		_, err := tryKubectl("get", "bu", "-n", "default")
		return err
	}).Should(Succeed())
}

// issueCertificate writes tls.crt and tls.key for the Service of config/usage,
// and returns the certificates to trust.
func issueCertificate(dir string) (caBundle []byte) {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "usage-server"},
		DNSNames:     []string{account + "." + systemNamespace + ".svc"},
		NotBefore:    time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	private, err := x509.MarshalPKCS8PrivateKey(key)
	Expect(err).NotTo(HaveOccurred())
	caBundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	Expect(os.WriteFile(filepath.Join(dir, "tls.crt"), caBundle, 0o600)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, "tls.key"),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600)).To(Succeed())
	return caBundle
}

func tokenFor(ctx context.Context, namespace, name string) string {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(3600))}}
	owner := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	Expect(api.SubResource("token").Create(ctx, owner, request)).To(Succeed())
	return request.Status.Token
}

func kubeconfigFor(user clientcmdapi.AuthInfo) clientcmdapi.Config {
	GinkgoHelper()
	ca := cfg.CAData
	if len(ca) == 0 {
		var err error
		ca, err = os.ReadFile(cfg.CAFile)
		Expect(err).NotTo(HaveOccurred())
	}
	const name = "usage"
	return clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: cfg.Host, CertificateAuthorityData: ca}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: &user},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
}

// memory returns the resident set of a process in MiB.
func memory(pid int) int {
	GinkgoHelper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			Expect(err).NotTo(HaveOccurred())
			return kib / 1024
		}
	}
	return 0
}
