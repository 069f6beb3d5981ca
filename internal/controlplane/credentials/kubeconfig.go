package credentials

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/koboshi-dev/koboshi/internal/controlplane/datadir"
	"github.com/koboshi-dev/koboshi/internal/pki"
)

// ClusterName is the name of the cluster, the context and the user in a kubeconfig.
const ClusterName = "koboshi"

// Kubeconfig returns a kubeconfig for the API server at the URL server, with a new client
// certificate.
func Kubeconfig(ca *pki.Authority, server string, client pki.Request) (*clientcmdapi.Config, error) {
	certPEM, keyPEM, err := ca.Issue(client)
	if err != nil {
		return nil, err
	}
	c := clientcmdapi.NewConfig()
	c.Clusters[ClusterName] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: ca.CertPEM()}
	c.AuthInfos[ClusterName] = &clientcmdapi.AuthInfo{ClientCertificateData: certPEM, ClientKeyData: keyPEM}
	c.Contexts[ClusterName] = &clientcmdapi.Context{Cluster: ClusterName, AuthInfo: ClusterName}
	c.CurrentContext = ClusterName
	return c, nil
}

// RESTConfig turns a kubeconfig into a client configuration without touching the disk.
func RESTConfig(c *clientcmdapi.Config) (*rest.Config, error) {
	return clientcmd.NewDefaultClientConfig(*c, nil).ClientConfig()
}

// WriteKubeconfig writes c to the file at path and makes the file readable only by
// this user.
func WriteKubeconfig(path string, c *clientcmdapi.Config) error {
	data, err := clientcmd.Write(*c)
	if err != nil {
		return fmt.Errorf("encoding kubeconfig: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("writing kubeconfig: %w", err)
	}
	return datadir.WriteFile(path, data, 0o600)
}

// MergeKubeconfig merges c into the file at path and makes the context of c the current
// context. Other clusters in the file are kept: path may be the user's own
// ~/.kube/config. The file is readable only by this user.
func MergeKubeconfig(path string, c *clientcmdapi.Config) error {
	// If path is a symlink, its target is replaced, not the symlink itself.
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	merged, err := clientcmd.LoadFromFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		merged, err = clientcmdapi.NewConfig(), nil
	}
	if err != nil {
		return fmt.Errorf("kubeconfig %s cannot be read, so it is left unchanged: %w", path, err)
	}
	maps.Copy(merged.Clusters, c.Clusters)
	maps.Copy(merged.AuthInfos, c.AuthInfos)
	maps.Copy(merged.Contexts, c.Contexts)
	merged.CurrentContext = c.CurrentContext
	return WriteKubeconfig(path, merged)
}
