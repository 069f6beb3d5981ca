// Package credentials keeps the credentials of one plane and its clients: a CA for
// clients and servers, a front-proxy CA for API aggregation, the key that signs
// service account tokens, and kubeconfigs.
package credentials

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/koboshi-dev/koboshi/internal/controlplane/datadir"
	"github.com/koboshi-dev/koboshi/internal/pki"
)

// Dir is a folder of PEM files with kubeadm's names.
type Dir string

// lasting lists the files that must survive a restart: every kubeconfig and service
// account token that was handed out depends on them.
var lasting = []string{"ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.key", "sa.pub"}

// Path returns the path of a file in the folder.
func (d Dir) Path(name string) string { return filepath.Join(string(d), name) }

// Missing returns the first lasting file that does not exist, or "".
func (d Dir) Missing() string {
	for _, name := range lasting {
		if _, err := os.Stat(d.Path(name)); err != nil {
			return name
		}
	}
	return ""
}

// Ensure creates the lasting files that do not exist. Ensure replaces all other certificates,
// because they only have to last as long as one process.
func (d Dir) Ensure(serverNames []string, serverIPs []net.IP) (*pki.Authority, error) {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return nil, fmt.Errorf("creating certificate folder: %w", err)
	}
	ca, err := d.authority("ca", "koboshi-ca")
	if err != nil {
		return nil, err
	}
	front, err := d.authority("front-proxy-ca", "koboshi-front-proxy-ca")
	if err != nil {
		return nil, err
	}
	if err := d.tokenKey(); err != nil {
		return nil, err
	}
	server := pki.Request{CommonName: "kube-apiserver", Names: serverNames, IPs: serverIPs, Server: true}
	kubelet := pki.Request{CommonName: "koboshi-node", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true}
	leaves := []struct {
		name string
		ca   *pki.Authority
		req  pki.Request
	}{
		{"apiserver", ca, server},
		{"kubelet", ca, kubelet},
		{"apiserver-kubelet-client", ca, pki.Request{CommonName: "kube-apiserver-kubelet-client"}},
		{"front-proxy-client", front, pki.Request{CommonName: "front-proxy-client"}},
	}
	for _, l := range leaves {
		certPEM, keyPEM, err := l.ca.Issue(l.req)
		if err != nil {
			return nil, fmt.Errorf("issuing %s: %w", l.name, err)
		}
		if err := d.writePair(l.name, certPEM, keyPEM); err != nil {
			return nil, err
		}
	}
	return ca, nil
}

func (d Dir) authority(name, commonName string) (*pki.Authority, error) {
	certs, err := cert.CertsFromFile(d.Path(name + ".crt"))
	if errors.Is(err, fs.ErrNotExist) {
		return d.newAuthority(name, commonName)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s.crt: %w", name, err)
	}
	key, err := keyutil.PrivateKeyFromFile(d.Path(name + ".key"))
	if err != nil {
		return nil, fmt.Errorf("reading %s.key: %w", name, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("reading %s.key: a key of type %T cannot sign certificates", name, key)
	}
	return &pki.Authority{Cert: certs[0], Key: signer}, nil
}

func (d Dir) newAuthority(name, commonName string) (*pki.Authority, error) {
	a, err := pki.New(commonName)
	if err != nil {
		return nil, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(a.Key)
	if err != nil {
		return nil, err
	}
	return a, d.writePair(name, a.CertPEM(), keyPEM)
}

// tokenKey creates the key pair that signs and verifies service account tokens.
func (d Dir) tokenKey() error {
	if _, err := os.Stat(d.Path("sa.pub")); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating sa.key: %w", err)
	}
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return fmt.Errorf("encoding sa.key: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encoding sa.pub: %w", err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: keyutil.PublicKeyBlockType, Bytes: der})
	if err := datadir.WriteFile(d.Path("sa.key"), private, 0o600); err != nil {
		return err
	}
	return datadir.WriteFile(d.Path("sa.pub"), public, 0o600)
}

// writePair writes the key first, because a pair is regarded as complete once its certificate
// exists.
func (d Dir) writePair(name string, certPEM, keyPEM []byte) error {
	if err := datadir.WriteFile(d.Path(name+".key"), keyPEM, 0o600); err != nil {
		return err
	}
	return datadir.WriteFile(d.Path(name+".crt"), certPEM, 0o600)
}
