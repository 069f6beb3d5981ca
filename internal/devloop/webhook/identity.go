package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/koboshi-dev/koboshi/internal/pki"
)

// ServerName is the name in the manager's certificate.
const ServerName = "localhost"

// Files writes the certificate and the key of the manager's webhook server to a folder, under
// the names that controller-runtime expects.
func Files(authority *pki.Authority, dir string) error {
	certificate, key, err := authority.Issue(server())
	if err != nil {
		return fmt.Errorf("making the certificate of the webhook server: %w", err)
	}
	for name, data := range map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": authority.CertPEM()} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return fmt.Errorf("writing the certificate of the webhook server: %w", err)
		}
	}
	return nil
}

func server() pki.Request {
	return pki.Request{CommonName: "webhooks", Names: []string{ServerName}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}, Server: true}
}

// identity returns a certificate for the listener, and the authorities that it trusts.
func identity(authority *pki.Authority) (tls.Certificate, *x509.CertPool, error) {
	certificate, key, err := authority.Issue(server())
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(authority.Cert)
	return pair, pool, nil
}
