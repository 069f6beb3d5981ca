package apiproxy

import (
	"crypto/tls"
	"net"

	"github.com/koboshi-dev/koboshi/internal/pki"
)

// identity creates a CA for one proxy, and a certificate for the proxy's
// server.
func identity() (server tls.Certificate, caPEM []byte, err error) {
	ca, err := pki.New("koboshi proxy CA")
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	certPEM, keyPEM, err := ca.Issue(pki.Request{
		CommonName: "koboshi proxy", Server: true,
		Names: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	server, err = tls.X509KeyPair(append(certPEM, ca.CertPEM()...), keyPEM)
	return server, ca.CertPEM(), err
}
