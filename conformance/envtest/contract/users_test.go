package contract

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func TestWhoMayDoWhat(t *testing.T) {
	env := start(t)
	t.Run("added users authenticate by their certificates", func(t *testing.T) { testUsers(t, env) })
	t.Run("anonymous users see healthz and nothing else", func(t *testing.T) { testAnonymous(t, env) })
	t.Run("the certificate that is served is the one in cert-dir", func(t *testing.T) { testServed(t, env) })
	t.Run("service account tokens authenticate and name the issuer", func(t *testing.T) { testTokens(t, env) })
	t.Run("kubectl works with the environment's kubeconfig", func(t *testing.T) { testKubectl(t, env) })
}

func testUsers(t *testing.T, env *envtest.Environment) {
	user, err := env.AddUser(envtest.User{Name: "reader", Groups: []string{"library", "visitors"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	self := whoami(t, clientset(t, user.Config()))
	if self.Username != "reader" || !slices.Contains(self.Groups, "library") || !slices.Contains(self.Groups, "visitors") {
		t.Errorf("the server sees %s of %v, want reader of library and visitors", self.Username, self.Groups)
	}
	_, err = clientset(t, user.Config()).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("a user without a role lists secrets: %v, want that to be forbidden", err)
	}
	admin := whoami(t, clientset(t, env.Config))
	if !slices.Contains(admin.Groups, "system:masters") {
		t.Errorf("the environment's own user is in %v and not in system:masters", admin.Groups)
	}
}

func whoami(t *testing.T, c kubernetes.Interface) authenticationv1.UserInfo {
	t.Helper()
	review, err := c.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo
}

func testAnonymous(t *testing.T, env *envtest.Environment) {
	config := rest.AnonymousClientConfig(env.Config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{
		"healthz": http.StatusOK, "livez": http.StatusOK, "readyz": http.StatusOK, "version": http.StatusOK,
		"api/v1/namespaces": http.StatusForbidden, "metrics": http.StatusForbidden,
	} {
		response, err := client.Get(config.Host + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != want {
			t.Errorf("anonymous GET of /%s: %d, want %d: %s", path, response.StatusCode, want, body)
		}
	}
}

func testServed(t *testing.T, env *envtest.Environment) {
	server := env.ControlPlane.APIServer
	file, err := os.ReadFile(filepath.Join(server.CertDir, "apiserver.crt"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(file)
	if block == nil {
		t.Fatal("apiserver.crt is not PEM")
	}
	conn, err := tls.Dial("tcp", server.HostPort(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if served := conn.ConnectionState().PeerCertificates[0]; !slices.Equal(served.Raw, block.Bytes) {
		t.Errorf("the server's certificate is for %s, issued by %s, and differs from the one in cert-dir", served.Subject, served.Issuer)
	}
}
