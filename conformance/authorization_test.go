package conformance

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

func TestLeaseElectsOneLeaderAmongTwoManagers(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	o := newOffice()
	p.runForOffice(t, ns, "one", o, time.Minute)
	p.runForOffice(t, ns, "two", o, time.Minute)
	leader := o.next(t)
	never(t, "there are two leaders", mistakeShows, func(ctx context.Context) error {
		lease, err := p.client.CoordinationV1().Leases(ns).Get(ctx, "manager", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if holder := *lease.Spec.HolderIdentity; holder != leader || len(o.elected) > 0 {
			return fmt.Errorf("%s was elected, %s holds the Lease", leader, holder)
		}
		return nil
	})
}

func TestReleasedLeaseIsTakenOverByTheOtherManager(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	o := newOffice()
	// The lease lasts longer than the test, so the other manager can become the leader only
	// if the lease is released.
	resign := map[string]func(){
		"one": p.runForOffice(t, ns, "one", o, time.Hour),
		"two": p.runForOffice(t, ns, "two", o, time.Hour),
	}
	first := o.next(t)
	resign[first]()
	if second := o.next(t); second == first {
		t.Errorf("%s leads again after it stopped", second)
	}
	o.mustNeverHaveHadTwo(t)
}

func TestExpiredLeaseIsTakenOverByTheOtherManager(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	// A manager that ends without releasing its lease leaves the following record.
	now := metav1.Now()
	err := p.lease(ns, "killed").Create(t.Context(), resourcelock.LeaderElectionRecord{
		HolderIdentity: "killed", LeaseDurationSeconds: 1, AcquireTime: now, RenewTime: now,
	})
	if err != nil {
		t.Fatal(err)
	}
	o := newOffice()
	p.runForOffice(t, ns, "one", o, time.Second)
	o.next(t)
}

func TestWhoAmINamesTheImpersonatedUser(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	out := p.kubectl(t, "auth", "whoami", "--as=jane", "--as-group=developers", "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups}")
	if want := `jane ["developers","system:authenticated"]`; out != want {
		t.Errorf("kubectl auth whoami says %s; want %s", out, want)
	}
}

func TestImpersonationWithoutPermissionIsRefused(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	config := p.serviceAccount(t, ns, "robot")
	config.Impersonate = rest.ImpersonationConfig{UserName: "jane"}
	_, err := whoAmI(t, config)
	mustBeForbidden(t, err, "cannot impersonate")
}

func TestServiceAccountTokenAuthenticatesAsTheServiceAccount(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	user, err := whoAmI(t, p.serviceAccount(t, ns, "robot"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:" + ns + ":robot"; user.Username != want {
		t.Errorf("the token is of %s; want %s", user.Username, want)
	}
	if err := wantSet("groups", user.Groups, []string{"system:serviceaccounts", "system:serviceaccounts:" + ns, "system:authenticated"}); err != nil {
		t.Error(err)
	}
}

func TestTokenOfADeletedServiceAccountIsRefused(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	config := p.serviceAccount(t, ns, "robot")
	if err := p.client.CoreV1().ServiceAccounts(ns).Delete(t.Context(), "robot", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// The API server caches the result of a token check for ten seconds.
	eventually(t, "the token to be refused", func(context.Context) error {
		if _, err := whoAmI(t, config); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the answer is %w; want 401 Unauthorized", err)
		}
		return nil
	})
}

func TestRBACRefusesWhatNoRoleGrants(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	robot := clientFor(t, p.serviceAccount(t, ns, "robot"))
	_, err := robot.CoreV1().ConfigMaps(ns).List(t.Context(), metav1.ListOptions{})
	mustBeForbidden(t, err, `User "system:serviceaccount:`+ns+`:robot" cannot list resource "configmaps"`)
}

func TestRoleBindingGrantsItsRoleInItsNamespaceOnly(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns, other := p.namespace(t), p.namespace(t)
	robot := clientFor(t, p.serviceAccount(t, ns, "robot"))
	p.mayListConfigMaps(t, ns, "robot")
	// The RBAC authorizer learns about a binding through a watch.
	eventually(t, "the permission to list", func(ctx context.Context) error {
		_, err := robot.CoreV1().ConfigMaps(ns).List(ctx, metav1.ListOptions{})
		return err
	})
	_, err := robot.CoreV1().ConfigMaps(other).List(t.Context(), metav1.ListOptions{})
	mustBeForbidden(t, err, `in the namespace "`+other+`"`)
	err = robot.CoreV1().ConfigMaps(ns).Delete(t.Context(), rootCA, metav1.DeleteOptions{})
	mustBeForbidden(t, err, "cannot delete")
}

func TestNobodyGrantsMoreThanTheyHave(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	ns := p.namespace(t)
	robot := clientFor(t, p.serviceAccount(t, ns, "robot"))
	p.bind(t, ns, "robot", rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles"}, Verbs: []string{"create"}})
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "more"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}},
	}
	eventually(t, "a refusal that mentions the missing permissions", func(ctx context.Context) error {
		_, err := robot.RbacV1().Roles(ns).Create(ctx, role, metav1.CreateOptions{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "attempting to grant RBAC permissions not currently held") {
			return fmt.Errorf("the answer is %w", err)
		}
		return nil
	})
}

func TestAnonymousRequestsAreRefusedExceptHealthAndVersion(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	client, err := rest.HTTPClientFor(rest.AnonymousClientConfig(p.config))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"/healthz": http.StatusOK, "/livez": http.StatusOK, "/readyz": http.StatusOK, "/version": http.StatusOK,
		"/": http.StatusForbidden, "/api": http.StatusForbidden, "/apis": http.StatusForbidden, "/metrics": http.StatusForbidden,
		"/openapi/v3": http.StatusForbidden, "/api/v1/namespaces": http.StatusForbidden,
	} {
		answer, err := client.Get(p.config.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != want {
			t.Errorf("%s answers %s; want %d", path, answer.Status, want)
		}
		if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestClientCertificateOfAnotherAuthorityIsRefused(t *testing.T) {
	t.Parallel()
	p := sharedPlane(t)
	if _, err := whoAmI(t, p.config); err != nil {
		t.Fatalf("a certificate of the plane's own authority: %v", err)
	}
	config := rest.AnonymousClientConfig(p.config)
	config.CertData, config.KeyData = foreignCertificate(t)
	if user, err := whoAmI(t, config); !apierrors.IsUnauthorized(err) {
		t.Errorf("the answer is user %v, error %v; want 401 Unauthorized", user, err)
	}
}

// office records which of a test's managers is the leader.
type office struct {
	elected chan string // the leaders, in order

	mu      sync.Mutex
	term    context.Context // term of the latest leader
	overlap error
}

func newOffice() *office { return &office{elected: make(chan string, 10)} }

// enter records that a manager has become the leader, which is allowed only after the term
// of the previous leader has ended.
func (o *office) enter(term context.Context, who string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.term != nil && o.term.Err() == nil {
		o.overlap = fmt.Errorf("%s became the leader during the term of another manager", who)
	}
	o.term = term
	o.elected <- who
}

func (o *office) next(t *testing.T) string {
	t.Helper()
	select {
	case who := <-o.elected:
		return who
	case <-time.After(within):
		t.Fatalf("no manager is elected within %v", within)
		return ""
	}
}

func (o *office) mustNeverHaveHadTwo(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.overlap != nil {
		t.Error(o.overlap)
	}
}

func (p *plane) lease(ns, identity string) *resourcelock.LeaseLock {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: ns, Name: "manager"},
		Client:     p.client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
}

// runForOffice makes a manager compete for the leadership. The function that it returns
// stops the manager, and waits until it has released its lease.
func (p *plane) runForOffice(t *testing.T, ns, identity string, o *office, lease time.Duration) (resign func()) {
	t.Helper()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            p.lease(ns, identity),
		ReleaseOnCancel: true,
		LeaseDuration:   lease,
		RenewDeadline:   lease * 2 / 3,
		RetryPeriod:     pollInterval,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { o.enter(ctx, identity) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	// The elector does not log, because its log would mix with the output of the tests.
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	done := make(chan struct{})
	go func() { elector.Run(ctx); close(done) }()
	resign = func() { cancel(); <-done }
	t.Cleanup(resign)
	return resign
}

// serviceAccount creates a service account and returns a client configuration
// with its token.
func (p *plane) serviceAccount(t *testing.T, ns, name string) *rest.Config {
	t.Helper()
	accounts := p.client.CoreV1().ServiceAccounts(ns)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(p.config)
	config.BearerToken = token.Status.Token
	return config
}

func (p *plane) mayListConfigMaps(t *testing.T, ns, account string) {
	t.Helper()
	p.bind(t, ns, account, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}})
}

func (p *plane) bind(t *testing.T, ns, account string, rule rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: account}, Rules: []rbacv1.PolicyRule{rule}}
	if _, err := p.client.RbacV1().Roles(ns).Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ns, Name: account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
	}
	if _, err := p.client.RbacV1().RoleBindings(ns).Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func clientFor(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func whoAmI(t *testing.T, config *rest.Config) (authenticationv1.UserInfo, error) {
	t.Helper()
	review, err := clientFor(t, config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	return review.Status.UserInfo, nil
}

func mustBeForbidden(t *testing.T, err error, because string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), because) {
		t.Errorf("the answer is %v; want 403 Forbidden because %s", err, because)
	}
}

// foreignCertificate returns a self-signed certificate that claims to be the
// administrator's.
func foreignCertificate(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "kubernetes-admin", Organization: []string{"system:masters"}},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}
