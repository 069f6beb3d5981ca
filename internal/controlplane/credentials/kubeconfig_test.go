package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/koboshi-dev/koboshi/internal/pki"
)

const othersKubeconfig = `apiVersion: v1
kind: Config
current-context: prod
clusters:
- name: prod
  cluster: {server: "https://prod.example.com", certificate-authority: ca/prod.crt}
contexts:
- name: prod
  context: {cluster: prod, user: me, namespace: mine}
users:
- name: me
  user: {token: secret}
preferences: {}
`

func TestKubeconfigLetsAClientInAsItsUser(t *testing.T) {
	t.Parallel()
	dir, ca := ensured(t)
	serving, err := tls.LoadX509KeyPair(dir.Path("apiserver.crt"), dir.Path("apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	var user *x509.Certificate
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		user = r.TLS.PeerCertificates[0]
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{serving}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool(ca.Cert)}
	server.StartTLS()
	t.Cleanup(server.Close)

	path := filepath.Join(t.TempDir(), "deep", "kubeconfig")
	writeKubeconfig(t, path, kubeconfig(t, ca, server.URL))
	for name, load := range map[string]func() (*rest.Config, error){
		"from the file":        func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", path) },
		"without touching one": func() (*rest.Config, error) { return RESTConfig(kubeconfig(t, ca, server.URL)) },
	} {
		config, err := load()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		client, err := rest.HTTPClientFor(config)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		response, err := client.Get(server.URL)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
		if user.Subject.CommonName != "admin" || !cmp.Equal(user.Subject.Organization, []string{"masters"}) {
			t.Errorf("%s: the server saw the user %v", name, user.Subject)
		}
		client.CloseIdleConnections()
	}
}

func TestKubeconfigKeepsWhatItSaysOfOthers(t *testing.T) {
	t.Parallel()
	_, ca := ensured(t)
	path := filepath.Join(t.TempDir(), "config")
	writeText(t, path, othersKubeconfig)
	want := loadKubeconfig(t, path)
	ours := kubeconfig(t, ca, "https://127.0.0.1:1")
	for name := range ours.Clusters {
		want.Clusters[name], want.AuthInfos[name], want.Contexts[name] = ours.Clusters[name], ours.AuthInfos[name], ours.Contexts[name]
	}
	want.CurrentContext = ClusterName
	// A second start replaces the entries that the first start wrote.
	writeKubeconfig(t, path, kubeconfig(t, ca, "https://127.0.0.1:2"))
	writeKubeconfig(t, path, ours)

	got := loadKubeconfig(t, path)
	text, err := clientcmd.Write(*got)
	if err != nil {
		t.Fatal(err)
	}
	wantText, err := clientcmd.Write(*want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(wantText), string(text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestKubeconfigThatCannotBeReadIsLeftAlone(t *testing.T) {
	t.Parallel()
	_, ca := ensured(t)
	for name, content := range map[string]string{
		"no YAML":        "{{{",
		"not ours":       "apiVersion: apps/v1\nkind: Deployment\n",
		"a list of text": "- a\n- b\n",
	} {
		path := filepath.Join(t.TempDir(), "config")
		writeText(t, path, content)
		err := MergeKubeconfig(path, kubeconfig(t, ca, "https://127.0.0.1:1"))
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want one that names %s", name, err, path)
		}
		if got := readText(t, path); got != content {
			t.Errorf("%s: the file was changed to %q", name, got)
		}
	}
}

func TestKubeconfigIsForThisUserOnly(t *testing.T) {
	t.Parallel()
	_, ca := ensured(t)
	for name, content := range map[string]*string{"new": nil, "empty": new(string), "of others": new(othersKubeconfig)} {
		path := filepath.Join(t.TempDir(), "config")
		if content != nil {
			writeText(t, path, *content)
		}
		writeKubeconfig(t, path, kubeconfig(t, ca, "https://127.0.0.1:1"))
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, want 0600", name, info.Mode().Perm())
		}
	}
}

// For many users, ~/.kube/config is a symlink into a folder with their other
// settings.
func TestKubeconfigBehindALinkStaysBehindIt(t *testing.T) {
	t.Parallel()
	_, ca := ensured(t)
	dir := t.TempDir()
	target, link := filepath.Join(dir, "dotfiles"), filepath.Join(dir, "config")
	writeText(t, target, othersKubeconfig)
	if err := os.Symlink("dotfiles", link); err != nil {
		t.Fatal(err)
	}
	writeKubeconfig(t, link, kubeconfig(t, ca, "https://127.0.0.1:1"))
	if got := loadKubeconfig(t, target).CurrentContext; got != ClusterName {
		t.Errorf("the file behind the link has the current context %q, want %q", got, ClusterName)
	}
	if to, err := os.Readlink(link); err != nil || to != "dotfiles" {
		t.Errorf("the link leads to %q (%v), want dotfiles", to, err)
	}
}

func kubeconfig(t *testing.T, ca *pki.Authority, server string) *clientcmdapi.Config {
	t.Helper()
	c, err := Kubeconfig(ca, server, pki.Request{CommonName: "admin", Groups: []string{"masters"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func writeKubeconfig(t *testing.T, path string, c *clientcmdapi.Config) {
	t.Helper()
	if err := MergeKubeconfig(path, c); err != nil {
		t.Fatal(err)
	}
}

func loadKubeconfig(t *testing.T, path string) *clientcmdapi.Config {
	t.Helper()
	c, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func writeText(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
