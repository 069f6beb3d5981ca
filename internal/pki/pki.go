// Package pki makes throwaway certificates.
//
// All keys are P-256: an RSA key would cost a noticeable part of a plane's start-up time,
// and no software outside this machine verifies the certificates.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

const (
	caLifetime   = 10 * 365 * 24 * time.Hour
	leafLifetime = 365 * 24 * time.Hour
	// clockSkew lets clients whose clocks are slightly behind accept a new certificate.
	clockSkew = time.Hour
)

// An Authority signs certificates. Its own certificate is never used as a server
// certificate, because strict clients, such as Python's, refuse a server that is its own
// CA.
type Authority struct {
	Cert *x509.Certificate
	Key  crypto.Signer
}

// New returns a new self-signed authority.
func New(commonName string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generating the key of %s: %w", commonName, err)
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: commonName},
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	c, err := sign(template, caLifetime, key.Public(), template, key)
	return &Authority{Cert: c, Key: key}, err
}

// A Request names the subject of a certificate.
type Request struct {
	CommonName string   // the user, for a client
	Groups     []string // the user's groups, for a client
	Names      []string // DNS names, for a server
	IPs        []net.IP // addresses, for a server
	Server     bool     // request a server certificate; otherwise a client certificate
}

// Issue makes a key, signs a certificate for it and returns both as PEM. The key is in
// PKCS #8, which libraries in all languages can read.
func (a *Authority) Issue(req Request) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("generating the key of %s: %w", req.CommonName, err)
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
	c, err := sign(template, leafLifetime, key.Public(), a.Cert, a.Key)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the key of %s: %w", req.CommonName, err)
	}
	return encode(c), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// CertPEM returns the authority's own certificate.
func (a *Authority) CertPEM() []byte { return encode(a.Cert) }

func encode(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

func sign(template *x509.Certificate, lifetime time.Duration, public crypto.PublicKey, parent *x509.Certificate, key crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	now := time.Now()
	template.SerialNumber = serial
	template.NotBefore = now.Add(-clockSkew)
	template.NotAfter = now.Add(lifetime)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of %s: %w", template.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}
