package controller

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/zap/zapcore"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/loglevel"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/probe"
)

var (
	scheme = runtime.NewScheme()
	cfg    *rest.Config
	api    client.Client
)

func TestControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "StorageBucket controller")
}

// The control plane is envtest's: KUBEBUILDER_ASSETS names its binaries, or
// USE_EXISTING_CLUSTER=true and KUBECONFIG name a cluster. Every spec has a
// namespace of its own, so the suite may run again on the same cluster.
var _ = BeforeSuite(func() {
	SetDefaultEventuallyTimeout(15 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))

	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(storagev1alpha1.AddToScheme(scheme)).To(Succeed())
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
})

// newNamespace makes a namespace for one spec. The cluster may have no
// controller that empties it, so the buckets are deleted here.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "stb-"}}
	Expect(api.Create(ctx, ns)).To(Succeed())
	DeferCleanup(func(ctx context.Context) {
		Expect(api.DeleteAllOf(ctx, &storagev1alpha1.StorageBucket{}, client.InNamespace(ns.Name))).To(Succeed())
		Expect(api.Delete(ctx, ns)).To(Succeed())
	})
	return ns.Name
}

// scripted is a store that answers as told and remembers being asked.
type scripted struct {
	mu     sync.Mutex
	answer func(context.Context, probe.Target) probe.Result
	asked  []probe.Target
}

func newScripted(result probe.Result) *scripted {
	s := &scripted{}
	s.answers(result)
	return s
}

func (s *scripted) answers(result probe.Result) {
	s.behaves(func(context.Context, probe.Target) probe.Result { return result })
}

func (s *scripted) behaves(f func(context.Context, probe.Target) probe.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = f
}

func (s *scripted) Probe(ctx context.Context, t probe.Target) probe.Result {
	s.mu.Lock()
	s.asked = append(s.asked, t)
	answer := s.answer
	s.mu.Unlock()
	return answer(ctx, t)
}

func (s *scripted) probes() int { return len(s.targets()) }

func (s *scripted) targets() []probe.Target {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]probe.Target(nil), s.asked...)
}

var (
	succeeded   = probe.Result{Reason: probe.ReasonSucceeded, Message: "the store answered for the bucket", Latency: 1500 * time.Microsecond}
	unreachable = probe.Result{Reason: probe.ReasonEndpointUnreachable, Message: "the endpoint refused the connection"}
	timedOut    = probe.Result{Reason: probe.ReasonTimeout, Message: "the store did not answer in time"}
)

// recorder counts what it passes on.
type recorder struct {
	events.EventRecorder
	mu      sync.Mutex
	reasons []string
}

func (r *recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.mu.Lock()
	r.reasons = append(r.reasons, eventType+" "+reason)
	r.mu.Unlock()
	r.EventRecorder.Eventf(regarding, related, eventType, reason, action, note, args...)
}

func (r *recorder) recorded() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.reasons...)
}

// logBuffer keeps all that was logged.
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
	events *recorder
	logs   *logBuffer
	// stop ends the manager and waits for that.
	stop func()
}

// startManager runs the controller for one namespace.
func startManager(namespace string, prober Prober, change ...func(*ctrl.Options)) *running {
	GinkgoHelper()
	r := &running{logs: &logBuffer{}}
	options := ctrl.Options{
		Scheme:  scheme,
		Cache:   CacheOptions(namespace),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Logger: zap.New(zap.WriteTo(io.MultiWriter(r.logs, GinkgoWriter)), zap.UseDevMode(true),
			// As verbose as the manager's flags can make it.
			zap.Level(loglevel.WithoutBodies(zapcore.Level(-100)))),
		// The specs start many managers in one process.
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
	for _, f := range change {
		f(&options)
	}
	mgr, err := ctrl.NewManager(cfg, options)
	Expect(err).NotTo(HaveOccurred())
	r.events = &recorder{EventRecorder: mgr.GetEventRecorder("storagebucket")}
	ctx, cancel := context.WithCancel(context.Background())
	Expect((&Reconciler{
		Client:        mgr.GetClient(),
		Secrets:       mgr.GetAPIReader(),
		Prober:        prober,
		Events:        r.events,
		Clock:         clock.RealClock{},
		MaxConcurrent: 4,
	}).SetupWithManager(ctx, mgr)).To(Succeed())

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

// newBucket is a valid StorageBucket that is probed once and then not for an
// hour, unless changed.
func newBucket(namespace, name string, change ...func(*storagev1alpha1.StorageBucketSpec)) *storagev1alpha1.StorageBucket {
	b := &storagev1alpha1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: storagev1alpha1.StorageBucketSpec{
			Endpoint:             "http://127.0.0.1:9000",
			Bucket:               "photos",
			CredentialsSecretRef: storagev1alpha1.SecretReference{Name: "credentials"},
			ProbeInterval:        metav1.Duration{Duration: time.Hour},
		},
	}
	for _, f := range change {
		f(&b.Spec)
	}
	return b
}

func everySecond(s *storagev1alpha1.StorageBucketSpec) {
	s.ProbeInterval = metav1.Duration{Duration: time.Second}
}

const (
	keyID     = "AKIDENVTEST"
	secretKey = "an-envtest-secret-nobody-may-see"
)

func newSecret(namespace string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "credentials"},
		StringData: map[string]string{
			storagev1alpha1.AccessKeyIDKey:     keyID,
			storagev1alpha1.SecretAccessKeyKey: secretKey,
		},
	}
}

func create(ctx context.Context, objs ...client.Object) {
	GinkgoHelper()
	for _, obj := range objs {
		Expect(api.Create(ctx, obj)).To(Succeed())
	}
}

// current reads a bucket's newest state.
func current(ctx context.Context, b *storagev1alpha1.StorageBucket) *storagev1alpha1.StorageBucket {
	GinkgoHelper()
	var got storagev1alpha1.StorageBucket
	Expect(api.Get(ctx, client.ObjectKeyFromObject(b), &got)).To(Succeed())
	return &got
}

// condition is "Status Reason" of a condition; empty when there is none.
func condition(b *storagev1alpha1.StorageBucket, conditionType string) string {
	c := meta.FindStatusCondition(b.Status.Conditions, conditionType)
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%s %s", c.Status, c.Reason)
}

// eventuallyHealthy waits for the Healthy condition's "Status Reason".
func eventuallyHealthy(ctx context.Context, b *storagev1alpha1.StorageBucket, want string) *storagev1alpha1.StorageBucket {
	GinkgoHelper()
	var got *storagev1alpha1.StorageBucket
	Eventually(func() string {
		got = current(ctx, b)
		return condition(got, storagev1alpha1.ConditionHealthy)
	}).Should(Equal(want))
	return got
}
