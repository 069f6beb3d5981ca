package controller

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/egress"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/loglevel"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/stores"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/faultserver"
)

const (
	keyID     = "SUITEROOTKEY"
	secretKey = "a-suite-secret-nobody-may-see"
	cluster   = "suite-cluster"

	// patience is the time limit for retries with growing waits.
	patience = time.Minute
)

var (
	scheme = runtime.NewScheme()
	cfg    *rest.Config
	api    client.Client
	// realStore is versitygw, in a separate process.
	realStore *url.URL
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "StorageBucket controllers")
}

// The control plane comes from envtest: KUBEBUILDER_ASSETS names its binaries,
// or USE_EXISTING_CLUSTER=true and KUBECONFIG name a cluster. Every spec has
// its own namespace and its own server in front of the store, so the suite may
// run repeatedly on the same cluster.
var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))

	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(storagev1.AddToScheme(scheme)).To(Succeed())
	env := &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("..", "..", "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	var err error
	cfg, err = env.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	api, err = client.New(cfg, client.Options{Scheme: scheme})
	Expect(err).NotTo(HaveOccurred())
	realStore = startRealStore()
})

// startRealStore starts versitygw; make s3server builds it.
func startRealStore() *url.URL {
	GinkgoHelper()
	program, err := filepath.Abs(filepath.Join("..", "..", "bin", "s3server"))
	Expect(err).NotTo(HaveOccurred())
	if path := os.Getenv("S3SERVER"); path != "" {
		program = path
	}
	Expect(program).To(BeARegularFile(), "run make s3server, or set S3SERVER")
	dir, err := os.MkdirTemp("", "stb-suite-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(os.RemoveAll(dir)).To(Succeed()) })
	ready := filepath.Join(dir, "ready")
	cmd := exec.Command(program, "--dir", filepath.Join(dir, "store"), "--ready-file", ready, "--die-with-parent")
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+keyID, "ROOT_SECRET_KEY="+secretKey)
	cmd.Stdout, cmd.Stderr = GinkgoWriter, GinkgoWriter
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		Expect(cmd.Process.Kill()).To(Succeed())
		_ = cmd.Wait()
	})
	var endpoint []byte
	Eventually(func() (err error) {
		endpoint, err = os.ReadFile(ready)
		return err
	}).Should(Succeed())
	u, err := url.Parse(string(endpoint))
	Expect(err).NotTo(HaveOccurred())
	return u
}

// world holds the namespace and the server of one spec.
type world struct {
	namespace string
	// server is in front of the real store: it records requests, and fails on demand.
	server *faultserver.Server
	// s3 is another client with full rights, which bypasses the server.
	s3 *s3.Client
}

// newWorld creates a namespace with a Secret and an ObjectStore named "store".
func newWorld(ctx context.Context, change ...func(*storagev1.ObjectStore)) *world {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "stb-"}}
	create(ctx, ns)
	w := &world{namespace: ns.Name, server: faultserver.Start(GinkgoT(), faultserver.Before(realStore))}
	w.s3 = s3.New(s3.Options{
		BaseEndpoint: aws.String(realStore.String()), Region: "us-east-1", UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(keyID, secretKey, ""),
	})
	DeferCleanup(func(ctx context.Context) { w.cleanUp(ctx) })
	create(ctx, newSecret(ns.Name))
	create(ctx, w.newStore(change...))
	return w
}

// cleanUp empties the namespace, because the cluster may have no controller that does it.
func (w *world) cleanUp(ctx context.Context) {
	GinkgoHelper()
	for _, list := range []client.ObjectList{&storagev1.StorageBucketList{}, &storagev1.ObjectStoreList{}} {
		Expect(api.List(ctx, list, client.InNamespace(w.namespace))).To(Succeed())
		switch l := list.(type) {
		case *storagev1.StorageBucketList:
			for i := range l.Items {
				discard(ctx, &l.Items[i])
			}
		case *storagev1.ObjectStoreList:
			for i := range l.Items {
				discard(ctx, &l.Items[i])
			}
		}
	}
	Expect(api.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}})).To(Succeed())
}

// discard deletes an object, even if it has finalizers.
func discard(ctx context.Context, o client.Object) {
	GinkgoHelper()
	Eventually(func() error {
		err := api.Get(ctx, client.ObjectKeyFromObject(o), o)
		if client.IgnoreNotFound(err) != nil || err != nil {
			return client.IgnoreNotFound(err)
		}
		if len(o.GetFinalizers()) > 0 {
			o.SetFinalizers(nil)
			if err := api.Update(ctx, o); err != nil {
				return err
			}
		}
		return client.IgnoreNotFound(api.Delete(ctx, o))
	}).Should(Succeed())
}

// The longest intervals that the CRDs allow. The time slot of an object can be at any point
// of its interval, so a longer interval makes a second probe during a spec less likely.
const (
	longestHealth = 24 * time.Hour
	longestProbe  = 7 * 24 * time.Hour
)

func (w *world) newStore(change ...func(*storagev1.ObjectStore)) *storagev1.ObjectStore {
	s := &storagev1.ObjectStore{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "store"},
		Spec: storagev1.ObjectStoreSpec{
			Endpoint:       w.server.URL,
			Credentials:    storagev1.Credentials{SecretRef: &storagev1.SecretReference{Name: "credentials"}},
			HealthInterval: metav1.Duration{Duration: longestHealth},
		},
	}
	for _, f := range change {
		f(s)
	}
	return s
}

func newSecret(namespace string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "credentials"},
		StringData: map[string]string{storagev1.AccessKeyIDKey: keyID, storagev1.SecretAccessKeyKey: secretKey},
	}
}

// bucketName returns the name of a bucket that no other spec uses.
func (w *world) bucketName(name string) string { return w.namespace + "-" + name }

// newBucket returns a StorageBucket that is probed once, and again only after a week
// or a change.
func (w *world) newBucket(name string, change ...func(*storagev1.StorageBucketSpec)) *storagev1.StorageBucket {
	b := &storagev1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: storagev1.StorageBucketSpec{
			BucketName: w.bucketName(name),
			StoreRef:   &storagev1.ObjectStoreReference{Name: "store"},
			Probe:      storagev1.ProbeSpec{Interval: metav1.Duration{Duration: longestProbe}},
		},
	}
	for _, f := range change {
		f(&b.Spec)
	}
	return b
}

func everySecond(s *storagev1.StorageBucketSpec) { s.Probe.Interval.Duration = time.Second }

func managedBucket(s *storagev1.StorageBucketSpec) { s.Management = storagev1.Manage }

func deletedBucket(s *storagev1.StorageBucketSpec) { s.DeletionPolicy = storagev1.Delete }

func emptiedBucket(s *storagev1.StorageBucketSpec) { s.ForceEmpty = true }

func create(ctx context.Context, objs ...client.Object) {
	GinkgoHelper()
	for _, obj := range objs {
		Expect(api.Create(ctx, obj)).To(Succeed())
	}
}

// logBuffer keeps everything that was logged.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// running is a manager under test.
type running struct {
	logs        *logBuffer
	controllers *Controllers
	// stop ends the manager and waits for its end.
	stop func()
}

// poke requests an immediate check of a bucket, as a notification does.
func (r *running) poke(b *storagev1.StorageBucket) {
	GinkgoHelper()
	Expect(r.controllers.Poke(context.Background(), client.ObjectKeyFromObject(b))).To(Succeed())
}

// run starts the controllers for the world's namespace.
func (w *world) run(change ...func(*Options)) *running {
	GinkgoHelper()
	return run([]string{w.namespace}, change...)
}

// run starts the controllers for some namespaces.
func run(namespaces []string, change ...func(*Options)) *running {
	GinkgoHelper()
	return runAs(nil, namespaces, change...)
}

// runAs starts the controllers as a user whose rights the API server checks; nil
// means an administrator.
func runAs(user *rest.ImpersonationConfig, namespaces []string, change ...func(*Options)) *running {
	GinkgoHelper()
	r := &running{logs: &logBuffer{}}
	config := rest.CopyConfig(cfg)
	if user != nil {
		config.Impersonate = *user
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Cache:   CacheOptions(namespaces...),
		Client:  client.Options{Cache: &client.CacheOptions{DisableFor: UncachedObjects()}},
		Metrics: metricsserver.Options{BindAddress: "0"},
		Logger: zap.New(zap.WriteTo(io.MultiWriter(r.logs, GinkgoWriter)), zap.UseDevMode(true),
			// The log is as verbose as the manager's flags allow.
			zap.Level(loglevel.WithoutBodies(zapcore.Level(-100)))),
		// The specs start many managers in one process, so the names of the controllers
		// repeat.
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	guard, err := egress.New([]string{"127.0.0.1"})
	Expect(err).NotTo(HaveOccurred())
	options := Options{
		Stores:        stores.Options{Guard: guard, RequestsPerSecond: 300, Concurrency: 8},
		MaxConcurrent: 8,
		Cluster:       cluster,
		Namespaces:    namespaces,
		Clock:         clock.RealClock{},
	}
	for _, f := range change {
		f(&options)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r.controllers, err = Setup(ctx, mgr, options)
	Expect(err).NotTo(HaveOccurred())

	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	r.stop = sync.OnceFunc(func() {
		GinkgoHelper()
		cancel()
		Eventually(ended).Should(Receive(BeNil()), "the manager did not stop cleanly")
	})
	DeferCleanup(r.stop)
	return r
}

// current reads the current state of an object.
func current[T client.Object](ctx context.Context, o T) T {
	GinkgoHelper()
	got, ok := o.DeepCopyObject().(T)
	Expect(ok).To(BeTrue())
	Expect(api.Get(ctx, client.ObjectKeyFromObject(o), got)).To(Succeed())
	return got
}

// condition returns "Status Reason" of a condition, or "" if there is none.
func condition(conditions []metav1.Condition, kind string) string {
	for _, c := range conditions {
		if c.Type == kind {
			return fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
	}
	return ""
}

// message returns the message of a condition, or "" if there is none.
func message(conditions []metav1.Condition, kind string) string {
	for _, c := range conditions {
		if c.Type == kind {
			return c.Message
		}
	}
	return ""
}

// eventually waits until a bucket's condition is "Status Reason".
func eventually(ctx context.Context, b *storagev1.StorageBucket, kind, want string) *storagev1.StorageBucket {
	GinkgoHelper()
	var got *storagev1.StorageBucket
	Eventually(func() string {
		got = current(ctx, b)
		return condition(got.Status.Conditions, kind)
	}).Should(Equal(want))
	return got
}

// update changes a bucket's spec.
func update(ctx context.Context, b *storagev1.StorageBucket, change func(*storagev1.StorageBucket)) {
	GinkgoHelper()
	Eventually(func() error {
		got := current(ctx, b)
		change(got)
		return api.Update(ctx, got)
	}).Should(Succeed())
}

// updateStore changes the world's ObjectStore.
func (w *world) updateStore(ctx context.Context, change func(*storagev1.ObjectStore)) {
	GinkgoHelper()
	Eventually(func() error {
		got := current(ctx, w.newStore())
		change(got)
		return api.Update(ctx, got)
	}).Should(Succeed())
}

// storeReady waits until the status of the world's ObjectStore reports that it is ready.
func (w *world) storeReady(ctx context.Context) {
	GinkgoHelper()
	Eventually(func() string { return condition(current(ctx, w.newStore()).Status.Conditions, ready) }).Should(Equal("True Available"))
}

// eventuallyGone waits until the StorageBucket no longer exists.
func eventuallyGone(ctx context.Context, b *storagev1.StorageBucket) {
	GinkgoHelper()
	Eventually(func() error { return api.Get(ctx, client.ObjectKeyFromObject(b), &storagev1.StorageBucket{}) }).
		Should(MatchError(ContainSubstring("not found")))
}
