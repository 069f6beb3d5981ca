package contract

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// On Linux every address in 127.0.0.0/8 belongs to this machine.
func TestOfTwoEtcdsOnOnePortTheNamedOneIsUsed(t *testing.T) {
	dir := t.TempDir()
	ports := freePorts(t, 3)
	client, peers := ports[0], ports[1:]
	keys := func(url string) func(context.Context) (int64, error) {
		c, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return func(ctx context.Context) (int64, error) {
			got, err := c.Get(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithCountOnly())
			if err != nil {
				return 0, err
			}
			return got.Count, nil
		}
	}
	var urls []string
	for i := range 2 {
		url, peer := fmt.Sprintf("http://127.0.0.%d:%d", i+1, client), fmt.Sprintf("http://127.0.0.1:%d", peers[i])
		run(t, "etcd", "--data-dir="+filepath.Join(dir, fmt.Sprint(i)), "--listen-client-urls="+url, "--advertise-client-urls="+url,
			"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
		eventually(t, "etcd's health", func(ctx context.Context) error { return answers(ctx, url+"/health", "", http.StatusOK) })
		urls = append(urls, url)
	}
	key, secure := writeKey(t, dir), freePorts(t, 1)[0]
	run(t, "kube-apiserver", "--cert-dir="+dir, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", secure), "--etcd-servers="+urls[1],
		"--authorization-mode=RBAC", "--service-cluster-ip-range=10.0.0.0/24", "--disable-admission-plugins=ServiceAccount",
		"--service-account-issuer=https://localhost", "--service-account-signing-key-file="+key, "--service-account-key-file="+key)
	eventually(t, "kube-apiserver's health", func(ctx context.Context) error {
		return answers(ctx, fmt.Sprintf("https://127.0.0.1:%d/healthz", secure), "", http.StatusOK)
	})
	for i, want := range []bool{false, true} {
		count, err := keys(urls[i])(t.Context())
		if err != nil || count > 0 != want {
			t.Errorf("%s holds %d keys (%v), want any: %t", urls[i], count, err, want)
		}
	}
}

func TestAuditEventsThatWereKeptBackAreThereAfterStop(t *testing.T) {
	dir := t.TempDir()
	rules, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(rules, []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := newEnvironment()
	for flag, value := range map[string]string{
		"audit-policy-file": rules, "audit-log-path": log, "audit-log-mode": "batch", "audit-log-batch-max-wait": "1h", "audit-log-batch-max-size": "100000",
		"audit-log-batch-buffer-size": "100000",
	} {
		with(flag, value)(env)
	}
	env.ControlPlane.Etcd = &envtest.Etcd{}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	_, err = clientset(t, config).CoreV1().ConfigMaps("default").Get(t.Context(), "asked-for-last", metav1.GetOptions{})
	if wantNotFound(err) != nil {
		t.Error(err)
	}
	if err := env.Stop(); err != nil {
		t.Error(err)
	}
	written, err := os.ReadFile(log)
	if err != nil || !bytes.Contains(written, []byte("asked-for-last")) {
		t.Errorf("the audit log has %d bytes (%v), and does not contain the last request", len(written), err)
	}
}
