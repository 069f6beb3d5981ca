package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
)

const viewerImage = "koboshi.example/markdownview:1.0.0"

var (
	scheme = runtime.NewScheme()
	cfg    *rest.Config
	api    client.Client
	// bare reports whether no Deployment controller is running, so that the suite must
	// imitate one.
	bare bool
)

func TestController(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "MarkdownView controller")
}

// envtest starts the control plane from the binaries in KUBEBUILDER_ASSETS. With
// USE_EXISTING_CLUSTER=true, the tests use the cluster in KUBECONFIG instead. Every spec
// has its own namespace, so the suite may run again on the same cluster.
var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(20 * time.Second)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
	logf.SetLogger(zap.New(zap.WriteTo(GinkgoWriter), zap.UseDevMode(true)))

	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, gatewayv1.Install, viewv1.AddToScheme} {
		Expect(add(scheme)).To(Succeed())
	}
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
	bare = !runsDeployments(ctx)
})

// runsDeployments creates a Deployment to find out whether a Deployment controller is running.
func runsDeployments(ctx context.Context) bool {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "mdv-probe-"}}
	create(ctx, ns)
	DeferCleanup(func(ctx context.Context) { Expect(api.Delete(ctx, ns)).To(Succeed()) })
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "probe"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}, Template: pod},
	}
	create(ctx, d)
	// A plane that envtest starts runs no controllers, unless koboshi test enables some. On a
	// busy machine, controllers may take many seconds.
	patience := 3 * time.Second
	if strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true") || os.Getenv("KOBOSHI_CONTROLLERS") != "" {
		patience = 20 * time.Second
	}
	for deadline := time.After(patience); ; {
		if current(ctx, d).Status.ObservedGeneration > 0 {
			return true
		}
		select {
		case <-deadline:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// world holds the resources of one spec.
type world struct {
	namespace string
	journal   *journal
	logs      *logBuffer
	manager   ctrl.Manager
	// stop stops the manager and waits until it has ended.
	stop func()
}

func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "mdv-"}}
	create(ctx, ns)
	w := &world{namespace: ns.Name, journal: &journal{}, logs: &logBuffer{}}
	DeferCleanup(func(ctx context.Context) { Expect(api.Delete(ctx, ns)).To(Succeed()) })
	if bare {
		play(w.namespace)
	}
	return w
}

// run starts the controller for the namespace of the world.
func (w *world) run(change ...func(*Options)) {
	GinkgoHelper()
	counted := rest.CopyConfig(cfg)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return w.journal.wrap(next) })
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme:  scheme,
		Cache:   CacheOptions(w.namespace),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Logger:  zap.New(zap.WriteTo(io.MultiWriter(w.logs, GinkgoWriter)), zap.UseDevMode(true)),
		// The specs start many managers in one process.
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	Expect(err).NotTo(HaveOccurred())
	o := Options{Children: children.Options{Image: viewerImage, Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")},
	}}}
	for _, f := range change {
		f(&o)
	}
	Expect(Setup(mgr, o)).To(Succeed())
	w.manager = mgr
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	w.stop = sync.OnceFunc(func() {
		GinkgoHelper()
		// If the context ends while the manager is starting, Start keeps a processor busy
		// while it waits, which may delay the start for a long time.
		select {
		case <-mgr.Elected():
		case err := <-ended:
			ended <- err
		case <-time.After(20 * time.Second):
		}
		cancel()
		Eventually(ended).Should(Receive(BeNil()), "the manager did not stop cleanly")
	})
	DeferCleanup(w.stop)
}

// newView returns a site with two pages.
func (w *world) newView(name string, change ...func(*viewv1.MarkdownViewSpec)) *viewv1.MarkdownView {
	v := &viewv1.MarkdownView{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: viewv1.MarkdownViewSpec{
			Replicas: new(int32(2)),
			Markdowns: map[string]string{
				"SUMMARY.md": "# Summary\n\n- [One](one.md)\n- [Two](two.md)\n",
				"one.md":     "# One\n", "two.md": "# Two\n",
			},
		},
	}
	for _, f := range change {
		f(&v.Spec)
	}
	return v
}

// childOf returns the site's object of this type.
func childOf[T client.Object](ctx context.Context, v *viewv1.MarkdownView, o T) T {
	GinkgoHelper()
	Expect(api.Get(ctx, client.ObjectKey{Namespace: v.Namespace, Name: children.ViewerName(v.Name)}, o)).To(Succeed())
	return o
}

// contents returns the ConfigMaps of the site.
func contents(ctx context.Context, v *viewv1.MarkdownView) []corev1.ConfigMap {
	GinkgoHelper()
	var list corev1.ConfigMapList
	Expect(api.List(ctx, &list, client.InNamespace(v.Namespace), client.MatchingLabels(children.Labels(v.Name)))).To(Succeed())
	return list.Items
}

func create(ctx context.Context, objs ...client.Object) {
	GinkgoHelper()
	for _, obj := range objs {
		Expect(api.Create(ctx, obj)).To(Succeed())
	}
}

// current reads the newest state of an object.
func current[T client.Object](ctx context.Context, o T) T {
	GinkgoHelper()
	got, ok := o.DeepCopyObject().(T)
	Expect(ok).To(BeTrue())
	Expect(api.Get(ctx, client.ObjectKeyFromObject(o), got)).To(Succeed())
	return got
}

// update changes an object.
func update[T client.Object](ctx context.Context, o T, change func(T)) {
	GinkgoHelper()
	Eventually(func() error {
		got := current(ctx, o)
		change(got)
		return api.Update(ctx, got)
	}).Should(Succeed())
}

// edit changes the text of a page.
func edit(ctx context.Context, v *viewv1.MarkdownView, text string) {
	GinkgoHelper()
	update(ctx, v, func(v *viewv1.MarkdownView) { v.Spec.Markdowns["one.md"] = text })
}

// told returns "Status Reason" for a condition of the newest generation, or "" if there is
// no such condition.
func told(v *viewv1.MarkdownView, kind string) string {
	for _, c := range v.Status.Conditions {
		if c.Type == kind && c.ObservedGeneration == v.Generation {
			return fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
	}
	return ""
}

func message(v *viewv1.MarkdownView, kind string) string {
	for _, c := range v.Status.Conditions {
		if c.Type == kind {
			return c.Message
		}
	}
	return ""
}

// eventually waits until a condition has the wanted status and reason, such as "True OK".
func eventually(ctx context.Context, v *viewv1.MarkdownView, kind, want string) *viewv1.MarkdownView {
	GinkgoHelper()
	var got *viewv1.MarkdownView
	Eventually(func() string {
		got = current(ctx, v)
		return told(got, kind)
	}).Should(Equal(want), func() string { return fmt.Sprintf("%+v", got.Status.Conditions) })
	return got
}

func eventuallyReady(ctx context.Context, v *viewv1.MarkdownView) *viewv1.MarkdownView {
	GinkgoHelper()
	return eventually(ctx, v, viewv1.ConditionReady, "True OK")
}

// settle waits until the site is Ready and the controller has made no writes for a while.
func settle(ctx context.Context, w *world, v *viewv1.MarkdownView) {
	GinkgoHelper()
	eventuallyReady(ctx, v)
	quiet(w)
}

// quiet waits until the controller has made no writes for a while.
func quiet(w *world) {
	GinkgoHelper()
	before := -1
	Eventually(func() bool {
		now := len(w.journal.writes())
		same := now == before
		before = now
		return same
	}).WithPolling(400 * time.Millisecond).Should(BeTrue())
}

// journal records the writes of one manager.
type journal struct {
	mu      sync.Mutex
	entries []string
	// answered holds the writes that the API server has accepted.
	answered []string
	// limit is the number of writes that are let through before every further write fails;
	// 0 means no limit.
	limit int
	// refuses returns the status code with which a request is refused; 0 lets it pass.
	refuses func(*http.Request) int
}

// refuse sets the function that decides which requests are refused from now on.
func (j *journal) refuse(f func(*http.Request) int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.refuses = f
}

// refusal returns the response to a request that is refused, as the API server would send it.
func (j *journal) refusal(r *http.Request) *http.Response {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.refuses == nil {
		return nil
	}
	code := j.refuses(r)
	if code == 0 {
		return nil
	}
	status := apierrors.NewGenericServerResponse(code, r.Method, schema.GroupResource{Resource: "objects"}, r.URL.Path, "refused by the test", 0, false).Status()
	status.APIVersion, status.Kind = "v1", "Status"
	body, err := json.Marshal(status)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Request: r, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)),
	}
}

func (j *journal) writes() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.entries...)
}

// accepted returns the writes that the API server has accepted.
func (j *journal) accepted() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.answered...)
}

// answer records a write that has succeeded.
func (j *journal) answer(r *http.Request, resp *http.Response) {
	if !isWrite(r) || resp.StatusCode >= http.StatusMultipleChoices {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.answered = append(j.answered, entry(r))
}

func isWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events")
}

func entry(r *http.Request) string { return r.Method + " " + r.URL.Path }

// passes records a write, and reports whether it is let through.
func (j *journal) passes(r *http.Request) bool {
	if !isWrite(r) {
		return true
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.limit > 0 && len(j.entries) >= j.limit {
		return false
	}
	j.entries = append(j.entries, entry(r))
	return true
}

func (j *journal) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if !j.passes(r) {
			return nil, apierrors.NewServiceUnavailable("the controller was stopped here")
		}
		if refusal := j.refusal(r); refusal != nil {
			return refusal, nil
		}
		resp, err := next.RoundTrip(r)
		if err == nil {
			j.answer(r, resp)
		}
		return resp, err
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// logBuffer keeps the log.
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
