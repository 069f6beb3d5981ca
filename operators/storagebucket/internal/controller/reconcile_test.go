package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	storagev1alpha1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1alpha1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/schedule"
)

func TestResultThatCouldNotBeWrittenIsAskedForAgain(t *testing.T) {
	s := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(s), storagev1alpha1.AddToScheme(s)); err != nil {
		t.Fatal(err)
	}
	b := newBucket("ns", "photos")
	b.Generation = 1
	secret := newSecret("ns")
	secret.Data = map[string][]byte{
		storagev1alpha1.AccessKeyIDKey:     []byte(keyID),
		storagev1alpha1.SecretAccessKeyKey: []byte(secretKey),
	}
	failures := 1
	c := fake.NewClientBuilder().WithScheme(s).WithObjects(b, secret).WithStatusSubresource(b).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object,
				p client.Patch, opts ...client.SubResourcePatchOption,
			) error {
				if failures--; failures >= 0 {
					return errors.New("the API server is away")
				}
				return c.SubResource(sub).Patch(ctx, obj, p, opts...)
			},
		}).Build()
	now := testingclock.NewFakeClock(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	store, recorded := newScripted(succeeded), events.NewFakeRecorder(10)
	r := &Reconciler{Client: c, Secrets: c, Prober: store, Events: recorded, Clock: now, plan: schedule.NewPlan(now)}
	req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}

	if _, err := r.Reconcile(t.Context(), req); err == nil {
		t.Fatal("the failed write was not reported")
	}
	if n := len(recorded.Events); n != 0 {
		t.Errorf("%d events for a change nobody can see", n)
	}
	for range 3 {
		if _, err := r.Reconcile(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if n := store.probes(); n != 2 {
		t.Errorf("%d probes, want one for each attempt to write and none after", n)
	}
	if n := len(recorded.Events); n != 1 {
		t.Errorf("%d events, want one", n)
	}
}

func TestCredentialsProblemsNameTheKeyAndNotTheValue(t *testing.T) {
	id, key := storagev1alpha1.AccessKeyIDKey, storagev1alpha1.SecretAccessKeyKey
	for name, tc := range map[string]struct {
		data    map[string][]byte
		message string
	}{
		"both":           {map[string][]byte{id: []byte("a"), key: []byte("b")}, ""},
		"no key ID":      {map[string][]byte{key: []byte("b")}, `Secret "credentials" has no key AWS_ACCESS_KEY_ID`},
		"no secret key":  {map[string][]byte{id: []byte("a")}, `Secret "credentials" has no key AWS_SECRET_ACCESS_KEY`},
		"empty":          {map[string][]byte{id: []byte("a"), key: nil}, `Secret "credentials" has no key AWS_SECRET_ACCESS_KEY`},
		"line end":       {map[string][]byte{id: []byte("a"), key: []byte("hidden\n")}, `Secret "credentials" has white space or control characters in AWS_SECRET_ACCESS_KEY`},
		"not even UTF-8": {map[string][]byte{id: []byte("\xff\xfe\x00"), key: []byte("b")}, `Secret "credentials" has white space or control characters in AWS_ACCESS_KEY_ID`},
	} {
		t.Run(name, func(t *testing.T) {
			c := credentialsOf(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credentials"}, Data: tc.data})
			got := ""
			if c.problem != nil {
				got = c.problem.Message
			}
			if got != tc.message {
				t.Errorf("got %q, want %q", got, tc.message)
			}
		})
	}
}

func TestCachedSecretHoldsNothingButItsIdentity(t *testing.T) {
	in := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "n", UID: "u", ResourceVersion: "7",
		Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: secretKey},
		Labels:      map[string]string{"l": secretKey},
	}}
	out, err := keepIdentity(in)
	if err != nil {
		t.Fatal(err)
	}
	got := out.(*metav1.PartialObjectMetadata)
	if got.Annotations != nil || got.Labels != nil || got.UID != "u" || got.ResourceVersion != "7" || got.Name != "n" {
		t.Errorf("%+v", got)
	}
	if _, err := keepIdentity(&corev1.Secret{}); err == nil {
		t.Error("a whole Secret was let into the cache")
	}
}
