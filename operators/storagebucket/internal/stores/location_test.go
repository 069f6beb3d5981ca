package stores

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	storagev1 "github.com/koboshi-dev/koboshi/operators/storagebucket/api/v1"
	"github.com/koboshi-dev/koboshi/operators/storagebucket/internal/s3store"
)

func TestAStoreMayLowerTheLimitsAndNotRaiseThem(t *testing.T) {
	o := Options{RequestsPerSecond: 100, Concurrency: 10}
	for _, tc := range []struct {
		limits      storagev1.RequestLimits
		rate        float64
		concurrency int
	}{
		{storagev1.RequestLimits{}, 100, 10},
		{storagev1.RequestLimits{RequestsPerSecond: 5, Concurrency: 2}, 5, 2},
		{storagev1.RequestLimits{RequestsPerSecond: 500, Concurrency: 200}, 100, 10},
	} {
		rate, concurrency := limitsOf(Location{Limits: tc.limits}, o)
		if rate != tc.rate || concurrency != tc.concurrency {
			t.Errorf("%+v: %v a second, %d at a time", tc.limits, rate, concurrency)
		}
	}
}

func TestANamespaceMayUseAStoreOnlyIfThatSaysSo(t *testing.T) {
	for _, tc := range []struct {
		allowed   []string
		namespace string
		want      bool
	}{
		{nil, "own", true},
		{nil, "other", false},
		{[]string{"other"}, "other", true},
		{[]string{"other"}, "own", true},
		{[]string{"oth"}, "other", false},
		{[]string{"*"}, "other", true},
	} {
		store := &storagev1.ObjectStore{ObjectMeta: metav1.ObjectMeta{Namespace: "own"}}
		store.Spec.AllowedNamespaces = tc.allowed
		if got := Allowed(store, tc.namespace); got != tc.want {
			t.Errorf("%q with %q: %v", tc.namespace, tc.allowed, got)
		}
	}
}

func TestKeysThatCannotWorkAreRefusedBeforeTheyAreSent(t *testing.T) {
	for name, tc := range map[string]struct {
		id, key, token string
		want           s3store.Reason
	}{
		"both":                    {"id", "key", "", ""},
		"with a session token":    {"id", "key", "token", ""},
		"no ID":                   {"", "key", "", s3store.ReasonCredentialsNotFound},
		"no key":                  {"id", "", "", s3store.ReasonCredentialsNotFound},
		"the line end of echo":    {"id", "key\n", "", s3store.ReasonInvalidCredentials},
		"a space before":          {" id", "key", "", s3store.ReasonInvalidCredentials},
		"a token with a line end": {"id", "key", "token\n", s3store.ReasonInvalidCredentials},
	} {
		_, err := credentialsOf(&corev1.Secret{Data: map[string][]byte{
			storagev1.AccessKeyIDKey: []byte(tc.id), storagev1.SecretAccessKeyKey: []byte(tc.key), storagev1.SessionTokenKey: []byte(tc.token),
		}})
		if got := s3store.ReasonOf(err); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestLocationsThatDifferInAnythingShareNoConnection(t *testing.T) {
	base := Location{Namespace: "a", Endpoint: "http://s3", Credentials: storagev1.Credentials{SecretRef: &storagev1.SecretReference{Name: "x"}}}
	same := base
	same.Credentials.SecretRef = &storagev1.SecretReference{Name: "x"}
	if base.id() != same.id() {
		t.Error("two locations that are the same have different connections")
	}
	for name, change := range map[string]func(*Location){
		"namespace": func(l *Location) { l.Namespace = "b" },
		"endpoint":  func(l *Location) { l.Endpoint = "http://s4" },
		"region":    func(l *Location) { l.Region = "eu" },
		"secret":    func(l *Location) { l.Credentials.SecretRef = &storagev1.SecretReference{Name: "y"} },
		"owner":     func(l *Location) { l.ExpectedBucketOwner = "111122223333" },
		"bundle":    func(l *Location) { l.CABundle = &storagev1.CABundleReference{Name: "z"} },
		"limits":    func(l *Location) { l.Limits.Concurrency = 1 },
	} {
		other := base
		change(&other)
		if base.id() == other.id() {
			t.Errorf("two locations that differ in the %s share a connection", name)
		}
	}
}
