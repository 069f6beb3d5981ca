package faultserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

// Certificate is the certificate of a server.
type Certificate int

// The certificates.
const (
	// Good is a certificate for the server's address, signed by the authority in RootCAs.
	Good Certificate = iota
	// UnknownAuthority is a certificate signed by an authority that is not in RootCAs.
	UnknownAuthority
	// Expired is a certificate that was valid until an hour ago.
	Expired
	// WrongHost is a certificate for another host.
	WrongHost
	// PlainHTTP means that there is no certificate: the server does not speak TLS at
	// all.
	PlainHTTP
)

// config returns the TLS configuration of the server, and the certificates that a
// client must trust.
func (c Certificate) config() (*tls.Config, *x509.CertPool, error) {
	trusted, err := testAuthority()
	if err != nil {
		return nil, nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(trusted.certificate)
	if c == PlainHTTP {
		return nil, roots, nil
	}
	signer := trusted
	if c == UnknownAuthority {
		if signer, err = newAuthority(); err != nil {
			return nil, nil, err
		}
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "faultserver"},
		NotBefore:    time.Now().Add(-24 * time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		DNSNames:     []string{"localhost"},
	}
	switch c {
	case Expired:
		leaf.NotAfter = time.Now().Add(-time.Hour)
	case WrongHost:
		leaf.IPAddresses, leaf.DNSNames = nil, []string{"elsewhere.example"}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("creating a key: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, signer.certificate, key.Public(), signer.key)
	if err != nil {
		return nil, nil, fmt.Errorf("signing: %w", err)
	}
	pair := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}, roots, nil
}

// authority signs certificates. It exists only in this process, and its key is not
// written anywhere.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// testAuthority returns the authority that all servers of a process share.
var testAuthority = sync.OnceValues(newAuthority)

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "faultserver authority"},
		NotBefore:             time.Now().Add(-48 * time.Hour),
		NotAfter:              time.Now().Add(48 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parsing the new certificate: %w", err)
	}
	return &authority{
		certificate: certificate,
		key:         key,
		pem:         pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}
