package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/test/e2e/rig"
)

func newSecret(namespace, id, key string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "credentials"},
		StringData: map[string]string{storagev1.AccessKeyIDKey: id, storagev1.SecretAccessKeyKey: key},
	}
}

func goodSecret(namespace string) *corev1.Secret {
	return newSecret(namespace, rig.AccessKey, rig.SecretKey)
}

// newObjectStore returns an ObjectStore that is checked again only after an event.
func newObjectStore(namespace, endpoint string) *storagev1.ObjectStore {
	return &storagev1.ObjectStore{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop"},
		Spec: storagev1.ObjectStoreSpec{
			Endpoint:       endpoint,
			Credentials:    storagev1.Credentials{SecretRef: &storagev1.SecretReference{Name: "credentials"}},
			HealthInterval: metav1.Duration{Duration: time.Hour},
		},
	}
}

// newBucket returns a bucket that is only observed.
func newBucket(namespace, name string, interval time.Duration) *storagev1.StorageBucket {
	return &storagev1.StorageBucket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: storagev1.StorageBucketSpec{
			StoreRef: &storagev1.ObjectStoreReference{Name: "shop"},
			Probe:    storagev1.ProbeSpec{Interval: metav1.Duration{Duration: interval}},
		},
	}
}

// newInlineBucket returns a bucket with an inline store.
func newInlineBucket(namespace, endpoint, name string, interval time.Duration) *storagev1.StorageBucket {
	b := newBucket(namespace, name, interval)
	b.Spec.StoreRef = nil
	b.Spec.Store = &storagev1.InlineStore{
		Endpoint: endpoint, CredentialsSecretRef: storagev1.SecretReference{Name: "credentials"},
	}
	return b
}

// condition returns a function that reads the "Status Reason" of a condition.
func condition(ctx context.Context, o client.Object, kind string) func() string {
	return func() string {
		var conditions []metav1.Condition
		key := client.ObjectKeyFromObject(o)
		var err error
		switch o.(type) {
		case *storagev1.ObjectStore:
			var got storagev1.ObjectStore
			err = api.Get(ctx, key, &got)
			conditions = got.Status.Conditions
		default:
			var got storagev1.StorageBucket
			err = api.Get(ctx, key, &got)
			conditions = got.Status.Conditions
		}
		if err != nil {
			return err.Error()
		}
		c := meta.FindStatusCondition(conditions, kind)
		if c == nil {
			return ""
		}
		return fmt.Sprintf("%s %s", c.Status, c.Reason)
	}
}

func healthy(ctx context.Context, o client.Object) func() string {
	return condition(ctx, o, storagev1.ConditionHealthy)
}

func ready(ctx context.Context, o client.Object) func() string {
	return condition(ctx, o, storagev1.ConditionReady)
}

// change changes an object and writes it.
func change[T client.Object](ctx context.Context, o T, edit func(T)) {
	GinkgoHelper()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
	before, ok := o.DeepCopyObject().(client.Object)
	Expect(ok).To(BeTrue())
	edit(o)
	Expect(api.Patch(ctx, o, client.MergeFrom(before))).To(Succeed())
}

// rotate puts another key pair into a Secret.
func rotate(ctx context.Context, secret *corev1.Secret, id, key string) {
	GinkgoHelper()
	change(ctx, secret, func(s *corev1.Secret) {
		s.Data = map[string][]byte{storagev1.AccessKeyIDKey: []byte(id), storagev1.SecretAccessKeyKey: []byte(key)}
	})
}

// eventReasons returns the reasons of the Events about an object.
func eventReasons(ctx context.Context, o client.Object) func() []string {
	return func() []string {
		var all eventsv1.EventList
		if err := api.List(ctx, &all, client.InNamespace(o.GetNamespace())); err != nil {
			return []string{err.Error()}
		}
		var reasons []string
		for i := range all.Items {
			if e := &all.Items[i]; e.Regarding.UID == o.GetUID() {
				reasons = append(reasons, e.Reason)
			}
		}
		return reasons
	}
}

// metrics returns the response of a manager's metrics endpoint.
func (m *managerProcess) metrics(ctx context.Context) string {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.metricsAddress+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	resp, err := http.DefaultClient.Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// written returns all texts that the operator has written to the API server.
func written(ctx context.Context, namespace string) string {
	GinkgoHelper()
	var events eventsv1.EventList
	Expect(api.List(ctx, &events, client.InNamespace(namespace))).To(Succeed())
	var b strings.Builder
	for _, o := range []any{events, objectsIn(ctx, namespace)} {
		text, err := json.Marshal(o)
		Expect(err).NotTo(HaveOccurred())
		b.Write(text)
	}
	return b.String()
}

// expectDiscretion checks that nothing that a manager wrote contains a secret
// or an error of the SDK.
func expectDiscretion(said ...string) {
	GinkgoHelper()
	for _, text := range said {
		for what, secret := range map[string]string{
			"the key ID":        rig.AccessKey,
			"the secret":        rig.SecretKey,
			"the wrong secret":  wrongSecret,
			"an unknown key ID": unknownKey,
			"the notify token":  notifyToken,
			"the SDK's error":   "api error",
		} {
			Expect(strings.Contains(text, secret)).To(BeFalse(), what+" was written")
		}
	}
}

func expectCalm(log string) {
	GinkgoHelper()
	for what, text := range map[string]string{
		"a right is missing":      "is forbidden",
		"an error is not handled": "Reconciler error",
		"it panicked":             "panic",
	} {
		Expect(strings.Contains(log, text)).To(BeFalse(), what)
	}
}
