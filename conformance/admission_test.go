package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// nobody is the URL of a webhook whose address has no listening process.
const nobody = "https://127.0.0.1:1/"

// review returns a webhook handler that answers with the result of decide.
func review(decide func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Request == nil {
			http.Error(w, fmt.Sprintf("no review: %v", err), http.StatusBadRequest)
			return
		}
		response := decide(in.Request)
		response.UID = in.Request.UID
		respond(w, admissionv1.AdmissionReview{TypeMeta: in.TypeMeta, Response: response})
	})
}

func allowed() *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Allowed: true}
}

func refused(format string, args ...any) *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: fmt.Sprintf(format, args...)}}
}

// refuseProbe refuses objects named "probe", which shows that the webhooks
// of a configuration are in effect.
func refuseProbe(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	if r.Name == "probe" {
		return refused("the webhooks are in effect")
	}
	return allowed()
}

// hook returns a webhook for the ConfigMaps that are created in one namespace.
func hook(name, namespace, url string, caBundle []byte) registrationv1.ValidatingWebhook {
	return registrationv1.ValidatingWebhook{
		Name:         name + ".example.com",
		ClientConfig: registrationv1.WebhookClientConfig{URL: &url, CABundle: caBundle},
		Rules: []registrationv1.RuleWithOperations{{
			Operations: []registrationv1.OperationType{registrationv1.Create},
			Rule:       registrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
		}},
		NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		SideEffects:             ptr.To(registrationv1.SideEffectClassNone),
		AdmissionReviewVersions: []string{"v1"},
	}
}

// validate registers webhooks until the test ends.
func (p *plane) validate(t *testing.T, hooks ...registrationv1.ValidatingWebhook) {
	t.Helper()
	configurations := p.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	c, err := configurations.Create(t.Context(), &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"},
		Webhooks:   hooks,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = configurations.Delete(context.Background(), c.Name, metav1.DeleteOptions{}) })
}

// tryConfigMap sends a ConfigMap through admission without storing it.
func (p *plane) tryConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error) {
	return tryConfigMapBy(ctx, p.client, namespace, name, metav1.DryRunAll)
}

func tryConfigMapBy(ctx context.Context, client kubernetes.Interface, namespace, name string, dryRun ...string) (*corev1.ConfigMap, error) {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return client.CoreV1().ConfigMaps(namespace).Create(ctx, c, metav1.CreateOptions{DryRun: dryRun})
}

// refusedSoon waits until a ConfigMap of that name is refused with the message. All kinds
// of admission get their configuration from informers, which may be late.
func (p *plane) refusedSoon(t *testing.T, namespace, name, message string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is refused with %q", name, message), func(ctx context.Context) error {
		_, err := p.tryConfigMap(ctx, namespace, name)
		return isRefusal(err, message)
	})
}

// isRefusal returns an error unless err is a refusal with that message.
func isRefusal(err error, message string) error {
	if err == nil {
		return errors.New("the request is not refused")
	}
	if !strings.Contains(err.Error(), message) {
		return fmt.Errorf("the request is refused for another reason: %w", err)
	}
	return nil
}

// wantForbidden checks that err has status 403 and contains that message.
func wantForbidden(t *testing.T, err error, message string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), message) {
		t.Errorf("not forbidden with %q: %v", message, err)
	}
}

func TestMutatingWebhookChangesObject(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	webhook := serve(t, review(func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return &admissionv1.AdmissionResponse{
			Allowed:   true,
			PatchType: ptr.To(admissionv1.PatchTypeJSONPatch),
			Patch:     []byte(`[{"op": "add", "path": "/data", "value": {"seen-by": "webhook"}}]`),
		}
	}))
	h := hook("change", ns, webhook.URL, webhook.caBundle)
	configurations := p.client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	c, err := configurations.Create(t.Context(), &registrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "conformance-"},
		Webhooks: []registrationv1.MutatingWebhook{{
			Name: h.Name, ClientConfig: h.ClientConfig, Rules: h.Rules, NamespaceSelector: h.NamespaceSelector,
			SideEffects: h.SideEffects, AdmissionReviewVersions: h.AdmissionReviewVersions,
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = configurations.Delete(context.Background(), c.Name, metav1.DeleteOptions{}) })
	eventually(t, "the webhook changes a ConfigMap", func(ctx context.Context) error {
		o, err := p.tryConfigMap(ctx, ns, "plain")
		if err == nil && o.Data["seen-by"] != "webhook" {
			err = fmt.Errorf("data is %v", o.Data)
		}
		return err
	})
}

func TestValidatingWebhookRefusesWithItsMessage(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	webhook := serve(t, review(func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return refused("%s %s is not welcome in %s", r.Kind.Kind, r.Name, r.Namespace)
	}))
	p.validate(t, hook("refuse", ns, webhook.URL, webhook.caBundle))
	p.refusedSoon(t, ns, "guest", `admission webhook "refuse.example.com" denied the request: ConfigMap guest is not welcome in `+ns)
}

func TestUnreachableWebhookRefusesByPolicyFail(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	h := hook("unreachable", ns, nobody, nil)
	h.FailurePolicy = ptr.To(registrationv1.Fail)
	p.validate(t, h)
	p.refusedSoon(t, ns, "any", `failed calling webhook "unreachable.example.com": failed to call webhook: Post "`+nobody)
}

func TestUnreachableWebhookLetsThroughByPolicyIgnore(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	h := hook("unreachable", ns, nobody, nil)
	h.FailurePolicy = ptr.To(registrationv1.Ignore)
	witness := serve(t, review(refuseProbe))
	p.validate(t, h, hook("witness", ns, witness.URL, witness.caBundle))
	p.refusedSoon(t, ns, "probe", "the webhooks are in effect")
	if _, err := p.tryConfigMap(t.Context(), ns, "any"); err != nil {
		t.Error(err)
	}
}

func TestLateWebhookRefusesByPolicyFail(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	h, _ := lateHook(t, ns)
	h.FailurePolicy = ptr.To(registrationv1.Fail)
	p.validate(t, h)
	p.refusedSoon(t, ns, "any", fmt.Sprintf(`failed calling webhook "late.example.com": failed to call webhook: Post "%s?timeout=1s": context deadline exceeded`, *h.ClientConfig.URL))
}

func TestLateWebhookLetsThroughByPolicyIgnore(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	h, calls := lateHook(t, ns)
	h.FailurePolicy = ptr.To(registrationv1.Ignore)
	witness := serve(t, review(refuseProbe))
	p.validate(t, h, hook("witness", ns, witness.URL, witness.caBundle))
	p.refusedSoon(t, ns, "probe", "the webhooks are in effect")
	before := calls.Load()
	// On a busy machine, the timeout may pass before the call arrives.
	eventually(t, "the webhook is called", func(ctx context.Context) error {
		if _, err := p.tryConfigMap(ctx, ns, "any"); err != nil {
			t.Fatal(err)
		}
		if calls.Load() == before {
			return errors.New("every request was let through without a call")
		}
		return nil
	})
}

// lateHook returns a webhook and a counter of its calls. The webhook does not answer
// before the test ends, and its timeout is one second.
func lateHook(t *testing.T, namespace string) (registrationv1.ValidatingWebhook, *atomic.Int32) {
	t.Helper()
	var calls atomic.Int32
	release := make(chan struct{})
	webhook := serve(t, review(func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		calls.Add(1)
		<-release
		return allowed()
	}))
	t.Cleanup(func() { close(release) }) // before the server waits for pending calls
	h := hook("late", namespace, webhook.URL+"/", webhook.caBundle)
	h.TimeoutSeconds = ptr.To[int32](1)
	return h, &calls
}

func TestWebhookSeesWhoAsks(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	webhook := serve(t, review(func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return refused("asked by %s of %v with %v", r.UserInfo.Username, r.UserInfo.Groups, r.UserInfo.Extra["example.com/seat"])
	}))
	p.validate(t, hook("who", ns, webhook.URL, webhook.caBundle))
	config := rest.CopyConfig(p.config)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "ann",
		Groups:   []string{"staff", "system:masters"},
		Extra:    map[string][]string{"example.com/seat": {"12a"}},
	}
	ann, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the webhook sees ann", func(ctx context.Context) error {
		_, err := tryConfigMapBy(ctx, ann, ns, "any", metav1.DryRunAll)
		return isRefusal(err, "asked by ann of [staff system:masters system:authenticated] with [12a]")
	})
}

func TestWebhookSeesWhetherRequestIsDryRun(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	webhook := serve(t, review(func(r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return refused("dry run: %t", *r.DryRun)
	}))
	p.validate(t, hook("dry-run", ns, webhook.URL, webhook.caBundle))
	p.refusedSoon(t, ns, "any", "dry run: true")
	_, err := tryConfigMapBy(t.Context(), p.client, ns, "any")
	if err := isRefusal(err, "dry run: false"); err != nil {
		t.Error(err)
	}
}

func TestMatchConditionsDecideWhetherWebhookIsAsked(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	webhook := serve(t, review(func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
		return refused("the webhook was asked")
	}))
	h := hook("conditional", ns, webhook.URL, webhook.caBundle)
	h.MatchConditions = []registrationv1.MatchCondition{{Name: "of-interest", Expression: `object.metadata.name.startsWith("odd-")`}}
	p.validate(t, h)
	p.refusedSoon(t, ns, "odd-one", "the webhook was asked")
	if _, err := p.tryConfigMap(t.Context(), ns, "even-one"); err != nil {
		t.Error(err)
	}
}

// policy applies a file of testdata, and deletes its objects when the test ends. The names of the
// objects contain the namespace.
func (p *plane) policy(t *testing.T, file, namespace string) {
	t.Helper()
	text := manifest(t, file, values{"NAMESPACE": namespace})
	p.apply(t, text)
	t.Cleanup(func() {
		if out, err := p.tryKubectl(text, "delete", "-f", "-", "--wait=false"); err != nil {
			t.Logf("deleting %s: %v\n%s", file, err, out)
		}
	})
}

func TestValidatingAdmissionPolicyRefusesWithItsMessage(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	p.policy(t, "validating_policy.yaml", ns)
	p.refusedSoon(t, ns, "bad-one", fmt.Sprintf("ValidatingAdmissionPolicy '%s' with binding '%s' denied request: bad-one is not good", ns, ns))
	for _, name := range []string{"good-one", "exempt"} {
		if _, err := p.tryConfigMap(t.Context(), ns, name); err != nil {
			t.Error(err)
		}
	}
}

func TestStatusOfValidatingAdmissionPolicyTellsTypeErrors(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	p.policy(t, "mistyped_policy.yaml", ns)
	eventually(t, "the policy is type-checked", func(ctx context.Context) error {
		policy, err := p.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(ctx, ns, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s := policy.Status
		if s.ObservedGeneration != policy.Generation || s.TypeChecking == nil || len(s.TypeChecking.ExpressionWarnings) != 1 {
			return fmt.Errorf("status is %v", s)
		}
		w := s.TypeChecking.ExpressionWarnings[0]
		if w.FieldRef != "spec.validations[0].expression" || !strings.Contains(w.Warning, "found no matching overload") {
			return fmt.Errorf("warning is %v", w)
		}
		return nil
	})
}

func TestMutatingAdmissionPolicyChangesObject(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	p.policy(t, "mutating_policy.yaml", ns)
	eventually(t, "the policy changes a ConfigMap", func(ctx context.Context) error {
		o, err := p.tryConfigMap(ctx, ns, "plain")
		if err == nil && o.Labels["seen-by"] != "policy" {
			err = fmt.Errorf("labels are %v", o.Labels)
		}
		return err
	})
}

func TestResourceQuotaRefusesOveruse(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	_, err := p.client.CoreV1().ResourceQuotas(ns).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "one-core"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse("1")}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cpu := func(quantity string) *corev1.Pod {
		pod := plainPod()
		pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(quantity)}
		return pod
	}
	p.podRefusedSoon(t, ns, cpu("2"), "exceeded quota: one-core, requested: requests.cpu=2, used: requests.cpu=0, limited: requests.cpu=1")
	if _, err := p.client.CoreV1().Pods(ns).Create(t.Context(), cpu("600m"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err = p.client.CoreV1().Pods(ns).Create(t.Context(), cpu("500m"), metav1.CreateOptions{})
	wantForbidden(t, err, "exceeded quota: one-core, requested: requests.cpu=500m, used: requests.cpu=600m, limited: requests.cpu=1")
}

func TestLimitRangeRefusesOversizedContainer(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	p.limitMemory(t, ns)
	pod := plainPod()
	pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	p.podRefusedSoon(t, ns, pod, "maximum memory usage per Container is 128Mi, but limit is 1Gi")
}

func TestLimitRangeSetsDefaultLimit(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	p.limitMemory(t, ns)
	eventually(t, "a Pod has the default limit", func(ctx context.Context) error {
		pod, err := p.client.CoreV1().Pods(ns).Create(ctx, plainPod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		if limit := pod.Spec.Containers[0].Resources.Limits.Memory().String(); limit != "64Mi" {
			return fmt.Errorf("the limit is %s instead of 64Mi", limit)
		}
		return nil
	})
}

// limitMemory limits containers to 128 MiB, with a default of 64 MiB.
func (p *plane) limitMemory(t *testing.T, namespace string) {
	t.Helper()
	_, err := p.client.CoreV1().LimitRanges(namespace).Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "small"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type:    corev1.LimitTypeContainer,
			Default: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")},
			Max:     corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("128Mi")},
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPodSecurityRefusesPrivilegedPodInRestrictedNamespace(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	label := []byte(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"restricted"}}}`)
	if _, err := p.client.CoreV1().Namespaces().Patch(t.Context(), ns, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := plainPod()
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: ptr.To(true)}
	p.podRefusedSoon(t, ns, pod, `violates PodSecurity "restricted:latest": privileged (container "c" must not set securityContext.privileged=true)`)
}

// plainPod returns a Pod without resource requests.
func plainPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "p-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none"}}},
	}
}

// podRefusedSoon waits until a Pod is refused with a message.
func (p *plane) podRefusedSoon(t *testing.T, namespace string, pod *corev1.Pod, message string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the Pod is refused with %q", message), func(ctx context.Context) error {
		_, err := p.client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return isRefusal(err, message)
	})
}
