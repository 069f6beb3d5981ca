// Package pki makes the throwaway certificates of one plane: a CA for clients
// and servers, a front-proxy CA for API aggregation, the key that signs
// service account tokens, and kubeconfigs.
//
// All keys are P-256. No software outside this machine verifies them, and an
// RSA key costs a noticeable part of the start-up time.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/koboshi-dev/koboshi/internal/controlplane/datadir"
)

const (
	caLifetime   = 10 * 365 * 24 * time.Hour
	leafLifetime = 365 * 24 * time.Hour
	// clockSkew lets clients whose clock is a little behind accept a fresh certificate.
	clockSkew = time.Hour
)

// An Authority signs certificates.
type Authority struct {
	Cert *x509.Certificate
	key  crypto.Signer
}

// Dir is a folder of PEM files with kubeadm's names.
type Dir string

// Files that outlive a restart: every kubeconfig and every service account
// token that was handed out depends on them.
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

// Ensure creates the lasting files that do not exist and renews every other
// certificate: those live only as long as one process.
func (d Dir) Ensure(serverNames []string, serverIPs []net.IP) (*Authority, error) {
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
	server := Request{CommonName: "kube-apiserver", Names: serverNames, IPs: serverIPs, Server: true}
	kubelet := Request{CommonName: "koboshi-node", IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true}
	leaves := []struct {
		name string
		ca   *Authority
		req  Request
	}{
		{"apiserver", ca, server},
		{"kubelet", ca, kubelet},
		{"apiserver-kubelet-client", ca, Request{CommonName: "kube-apiserver-kubelet-client"}},
		{"front-proxy-client", front, Request{CommonName: "front-proxy-client"}},
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

// A Request names the subject of a certificate.
type Request struct {
	CommonName string   // the user, for a client
	Groups     []string // the user's groups, for a client
	Names      []string // DNS names, for a server
	IPs        []net.IP // addresses, for a server
	Server     bool     // a server certificate; otherwise a client's
}

// Issue signs a new key pair and returns both as PEM.
func (a *Authority) Issue(req Request) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating key: %w", err)
	}
	usage := x509.ExtKeyUsageClientAuth
	if req.Server {
		usage = x509.ExtKeyUsageServerAuth
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: req.CommonName, Organization: req.Groups},
		DNSNames:    req.Names,
		IPAddresses: req.IPs,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	c, err := sign(template, leafLifetime, key.Public(), a.Cert, a.key)
	if err != nil {
		return nil, nil, err
	}
	keyPEM, err = keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding key: %w", err)
	}
	certPEM, err = cert.EncodeCertificates(c)
	return certPEM, keyPEM, err
}

// CertPEM returns the authority's own certificate.
func (a *Authority) CertPEM() ([]byte, error) { return cert.EncodeCertificates(a.Cert) }

func (d Dir) authority(name, commonName string) (*Authority, error) {
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
		return nil, fmt.Errorf("reading %s.key: a %T cannot sign", name, key)
	}
	return &Authority{Cert: certs[0], key: signer}, nil
}

func (d Dir) newAuthority(name, commonName string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating %s.key: %w", name, err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	c, err := sign(template, caLifetime, key.Public(), template, key)
	if err != nil {
		return nil, err
	}
	a := &Authority{Cert: c, key: key}
	certPEM, err := a.CertPEM()
	if err != nil {
		return nil, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, err
	}
	return a, d.writePair(name, certPEM, keyPEM)
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

// writePair writes the key first: a certificate without its key would look
// complete.
func (d Dir) writePair(name string, certPEM, keyPEM []byte) error {
	if err := datadir.WriteFile(d.Path(name+".key"), keyPEM, 0o600); err != nil {
		return err
	}
	return datadir.WriteFile(d.Path(name+".crt"), certPEM, 0o600)
}

func sign(template *x509.Certificate, lifetime time.Duration, public crypto.PublicKey, parent *x509.Certificate, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("drawing serial number: %w", err)
	}
	now := time.Now()
	template.SerialNumber = serial
	template.NotBefore = now.Add(-clockSkew)
	template.NotAfter = now.Add(lifetime)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("signing certificate of %s: %w", template.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}
