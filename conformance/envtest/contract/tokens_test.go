package contract

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

func testTokens(t *testing.T, env *envtest.Environment) {
	c := clientset(t, env.Config).CoreV1().ServiceAccounts("default")
	robot := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	if _, err := c.Create(t.Context(), robot, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	request, err := c.CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(env.Config)
	config.BearerToken = request.Status.Token
	if self, want := whoami(t, clientset(t, config)), "system:serviceaccount:default:robot"; self.Username != want {
		t.Errorf("the server sees the token's bearer as %s, want %s", self.Username, want)
	}
	// envtest sets the server's own address as the issuer.
	if got, want := issuer(t, request.Status.Token), env.ControlPlane.APIServer.SecureServing.URL("https", "/").String(); got != want {
		t.Errorf("the token's issuer is %s, want %s, as set by the flag", got, want)
	}
}

func issuer(t *testing.T, token string) string {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("the token has %d parts", len(parts))
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	return claims.Issuer
}

func testKubectl(t *testing.T, env *envtest.Environment) {
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, env.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "kubectl"), "--kubeconfig", kubeconfig, "get", "ns", "default", "-o", "name")
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "namespace/default" {
		t.Errorf("kubectl get ns default: %v\n%s", err, out)
	}
}
