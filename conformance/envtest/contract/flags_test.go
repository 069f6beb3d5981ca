package contract

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// output collects the output of a process while it runs.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

const everyRequest = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n"

func policy(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(name, []byte(everyRequest), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestFlagsOfTheAPIServerReachIt(t *testing.T) {
	auditLog := filepath.Join(t.TempDir(), "audit.log")
	var stderr output
	env := start(t,
		with("runtime-config", "batch/v1=false"),
		with("feature-gates", "MutatingAdmissionPolicy=true"),
		with("max-requests-inflight", "391"),
		with("max-mutating-requests-inflight", "9"),
		with("advertise-address", "192.0.2.7"),
		with("disable-admission-plugins", "ServiceAccount", "PodSecurity"),
		with("enable-admission-plugins", "AlwaysPullImages"),
		with("audit-log-path", auditLog),
		with("audit-policy-file", policy(t)),
		with("v", "6"),
		func(env *envtest.Environment) { env.ControlPlane.GetAPIServer().Err = &stderr },
	)
	c := clientset(t, env.Config)
	t.Run("runtime-config takes an API out", func(t *testing.T) {
		_, err := c.BatchV1().Jobs("default").List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("listing Jobs: %v, want it not to be found", err)
		}
	})
	t.Run("feature-gates are in effect", func(t *testing.T) {
		wantMetric(t, c, `kubernetes_feature_enabled{name="MutatingAdmissionPolicy",stage=`, " 1")
	})
	t.Run("v sets how much is logged to Err", func(t *testing.T) {
		eventually(t, "a log line at level 6", func(context.Context) error { return contains(&stderr, `verb="GET"`) })
	})
	t.Run("audit-log-path is written", func(t *testing.T) { testAuditLog(t, c, auditLog) })
	t.Run("disable-admission-plugins disables", func(t *testing.T) { testNoPodSecurity(t, c) })
	t.Run("enable-admission-plugins enables", func(t *testing.T) {
		if pod := createPod(t, c, "default", false); pod.Spec.Containers[0].ImagePullPolicy != corev1.PullAlways {
			t.Errorf("the pull policy is %s; AlwaysPullImages sets Always", pod.Spec.Containers[0].ImagePullPolicy)
		}
	})
	t.Run("advertise-address is the service's endpoint", func(t *testing.T) { testAdvertised(t, c, "192.0.2.7") })
	t.Run("max-requests-inflight is in effect", func(t *testing.T) {
		// API Priority and Fairness distributes 400 seats, the sum of the two limits for
		// requests in flight. The level workload-low has 100 of the 245 shares of all
		// levels.
		wantMetric(t, c, `apiserver_flowcontrol_nominal_limit_seats{priority_level="workload-low"}`, " 164")
	})
}

func contains(o *output, want string) error {
	if s := o.String(); !strings.Contains(s, want) {
		return fmt.Errorf("%q is not in %d bytes that end %q", want, len(s), s[max(0, len(s)-500):])
	}
	return nil
}

// wantMetric waits for a metric whose line has this prefix and suffix.
func wantMetric(t *testing.T, c kubernetes.Interface, prefix, suffix string) {
	t.Helper()
	eventually(t, "the metric "+prefix, func(ctx context.Context) error {
		metrics, err := c.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(metrics)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, prefix) && strings.HasSuffix(line, suffix) {
				return nil
			}
			if strings.HasPrefix(line, prefix) {
				err = fmt.Errorf("%s, want it to end%s", line, suffix)
			}
		}
		return cmp.Or(err, errors.New("the metric does not exist"))
	})
}

func testAuditLog(t *testing.T, c kubernetes.Interface, name string) {
	ctx := t.Context()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "audited"}}
	if _, err := c.CoreV1().ConfigMaps("default").Create(ctx, object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the create in the audit log", func(context.Context) error {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return audited(data, "create", "audited")
	})
}

// audited searches an audit log for an event. The last line may be incomplete.
func audited(log []byte, verb, object string) error {
	events := 0
	for line := range bytes.Lines(log) {
		var event struct {
			Kind, Verb string
			ObjectRef  struct{ Name string }
		}
		if json.Unmarshal(line, &event) != nil || event.Kind != "Event" {
			continue
		}
		if events++; event.Verb == verb && event.ObjectRef.Name == object {
			return nil
		}
	}
	return fmt.Errorf("no %s of %s among %d events", verb, object, events)
}

func testNoPodSecurity(t *testing.T, c kubernetes.Interface) {
	strict := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "strict", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}
	if _, err := c.CoreV1().Namespaces().Create(t.Context(), strict, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	createPod(t, c, "strict", true) // PodSecurity would refuse it
}

func createPod(t *testing.T, c kubernetes.Interface, namespace string, privileged bool) *corev1.Pod {
	t.Helper()
	pod, err := c.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "main", Image: "example.com/main:1",
			SecurityContext: &corev1.SecurityContext{Privileged: &privileged},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

func testAdvertised(t *testing.T, c kubernetes.Interface, want string) {
	eventually(t, "the address in the EndpointSlice kubernetes", func(ctx context.Context) error {
		slice, err := c.DiscoveryV1().EndpointSlices("default").Get(ctx, "kubernetes", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(slice.Endpoints) != 1 || slice.Endpoints[0].Addresses[0] != want {
			return fmt.Errorf("the endpoints are %v, want %s", slice.Endpoints, want)
		}
		return nil
	})
}

func TestTheAuditLogOnStandardOutputGoesToOut(t *testing.T) {
	var stdout output
	env := start(t,
		with("audit-log-path", "-"),
		with("audit-policy-file", policy(t)),
		func(env *envtest.Environment) { env.ControlPlane.GetAPIServer().Out = &stdout },
	)
	createConfigMap(t, clientset(t, env.Config), "audited")
	eventually(t, "the create in the audit log on Out", func(context.Context) error {
		return audited([]byte(stdout.String()), "create", "audited")
	})
}

func TestAWrongFlagFailsTheStartAndErrSaysWhy(t *testing.T) {
	for name, test := range map[string]struct{ flag, value, reason string }{
		"unknown":     {"no-such-flag", "x", "no-such-flag"},
		"wrong value": {"max-requests-inflight", "many", "max-requests-inflight"},
		"wrong file":  {"audit-policy-file", "/no/such/policy", "/no/such/policy"},
	} {
		t.Run(name, func(t *testing.T) {
			var stderr output
			// An Environment would make five attempts to start the server.
			plane := &envtest.ControlPlane{APIServer: &envtest.APIServer{Err: &stderr, StartTimeout: within}}
			plane.APIServer.Configure().Set(test.flag, test.value)
			if err := plane.Start(); err == nil || !strings.Contains(err.Error(), "stopped unexpectedly") {
				t.Errorf("Start with --%s=%s: %v, want the process to end", test.flag, test.value, err)
				if err := plane.Stop(); err != nil {
					t.Error(err)
				}
			}
			if err := contains(&stderr, test.reason); err != nil {
				t.Error(err)
			}
		})
	}
}
