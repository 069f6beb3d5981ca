package notify

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func newNamespace(t *testing.T) string {
	t.Helper()
	ns, err := api.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "notify-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = api.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{})
	})
	return ns.Name
}

// serviceAccount creates a service account and returns a token for it.
func serviceAccount(t *testing.T, namespace, name string) string {
	t.Helper()
	accounts := api.CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

// allow grants the service account the right to create a subresource of one object.
func allow(t *testing.T, namespace, account, resource, name string) {
	t.Helper()
	_, err := api.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"storage.koboshi.dev"}, Resources: []string{resource},
			ResourceNames: []string{name}, Verbs: []string{"create"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	resource, subresource, _ := strings.Cut(resource, "/")
	awaitAllowed(t, authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + namespace + ":" + account,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "create", Group: "storage.koboshi.dev",
			Resource: resource, Subresource: subresource, Name: name,
		},
	})
}

// awaitAllowed waits until the API server has noticed a newly granted right, which takes a
// moment. An earlier request would make the server under test cache the refusal.
func awaitAllowed(t *testing.T, spec authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for {
		review, err := api.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
			&authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if review.Status.Allowed {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s does not have the right that it was granted", spec.User)
		}
	}
}

// reviewSpy counts the requests to the API server, and can make them fail.
type reviewSpy struct {
	tokens, rights atomic.Int32
	down           atomic.Bool
	next           http.RoundTripper
}

func (s *reviewSpy) RoundTrip(req *http.Request) (*http.Response, error) {
	switch {
	case strings.HasSuffix(req.URL.Path, "/tokenreviews"):
		s.tokens.Add(1)
	case strings.HasSuffix(req.URL.Path, "/subjectaccessreviews"):
		s.rights.Add(1)
	}
	if s.down.Load() {
		return nil, http.ErrServerClosed
	}
	return s.next.RoundTrip(req)
}

// withAPIServer makes the server authenticate clients with the API server only.
func withAPIServer(spy *reviewSpy) func(*Server) {
	return func(s *Server) {
		s.TokenFile = ""
		s.Config = rest.CopyConfig(config)
		s.Config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			spy.next = next
			return spy
		})
	}
}

func TestServiceAccountMayDoWhatRBACSays(t *testing.T) {
	ns := newNamespace(t)
	spy := &reviewSpy{}
	r := newRig(t, withAPIServer(spy))
	poker := "Bearer " + serviceAccount(t, ns, "poker")
	allow(t, ns, "poker", "storagebuckets/poke", "photos")
	store := serviceAccount(t, ns, "store") // without the word Bearer, as MinIO may send it
	allow(t, ns, "store", "objectstores/notify", "store")

	mine := "/v1/buckets/" + ns + "/photos/poke"
	events := "/v1/stores/" + ns + "/store/events"
	r.wantStatus(request{path: mine, authorization: poker}, 202)
	r.wantStatus(request{path: "/v1/buckets/" + ns + "/films/poke", authorization: poker}, 403)
	r.wantStatus(request{path: "/v1/buckets/team-a/photos/poke", authorization: poker}, 403)
	r.wantStatus(request{path: events, authorization: poker, body: aws("photos")}, 403)
	// The request is allowed, but the response is 404 because the store does not exist.
	r.wantStatus(request{path: events, authorization: store, body: aws("photos")}, 404)
	r.wantStatus(request{path: mine, authorization: store}, 403)
	r.wantStatus(request{path: mine, authorization: "Bearer " + staticToken}, 401)
	if got := r.takePoked(); len(got) != 1 || got[0] != ns+"/photos" {
		t.Errorf("poked %v", got)
	}
	if strings.Contains(r.logged(), store) {
		t.Error("a token is in the log")
	}
}

func TestAnswersOfTheAPIServerServeManyRequests(t *testing.T) {
	ns := newNamespace(t)
	spy := &reviewSpy{}
	r := newRig(t, withAPIServer(spy))
	token := "Bearer " + serviceAccount(t, ns, "poker")
	allow(t, ns, "poker", "storagebuckets/poke", "photos")
	r.wantStatus(request{path: "/v1/buckets/" + ns + "/photos/poke", authorization: token}, 202)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 25 {
				r.wantStatus(request{path: "/v1/buckets/" + ns + "/photos/poke", authorization: token}, 202)
				r.wantStatus(request{path: pokePath, authorization: "Bearer always-the-same-wrong-token"}, 401)
			}
		})
	}
	all.Wait()
	// Two TokenReviews and one SubjectAccessReview are expected, and a few more if the test
	// takes longer than responses are cached.
	if spy.tokens.Load() > 20 || spy.rights.Load() > 10 {
		t.Errorf("%d TokenReviews, %d SubjectAccessReviews", spy.tokens.Load(), spy.rights.Load())
	}
}

func TestStrangersCannotFloodTheAPIServerThroughTheEndpoint(t *testing.T) {
	spy := &reviewSpy{}
	r := newRig(t, withAPIServer(spy))
	for i := range 100 * reviewBurst { // each with a different token
		status, _, _ := r.do(request{path: pokePath, authorization: fmt.Sprint("Bearer wrong-token-", i)})
		if status == http.StatusTooManyRequests {
			return
		}
	}
	t.Errorf("%d requests to the API server", spy.tokens.Load())
}

func TestWithoutTheAPIServerOnlyTheStaticTokenIsAccepted(t *testing.T) {
	ns := newNamespace(t)
	spy := &reviewSpy{}
	r := newRig(t, func(s *Server) {
		file := s.TokenFile
		withAPIServer(spy)(s)
		s.TokenFile = file
	})
	token := "Bearer " + serviceAccount(t, ns, "poker")
	allow(t, ns, "poker", "storagebuckets/poke", "photos")
	spy.down.Store(true)
	mine := "/v1/buckets/" + ns + "/photos/poke"
	r.wantStatus(request{path: mine, authorization: token}, 503)
	r.wantStatus(request{path: mine}, 202)
	spy.down.Store(false)
	r.wantStatus(request{path: mine, authorization: token}, 202) // the failure was not remembered
}
