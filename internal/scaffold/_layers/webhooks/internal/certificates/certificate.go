/*
Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// lifetime is as long as that of certificates which cert-manager makes by default.
	lifetime = 90 * 24 * time.Hour
	// renewal is the rest of the lifetime at which a certificate is replaced.
	renewal = 30 * 24 * time.Hour
	// skew is the difference between the clocks of machines that does no harm.
	skew = time.Hour

	authoritiesKey = "ca.crt"
)

// A certificate signs itself, so there is no key of an authority that somebody could steal.
type certificate struct {
	pair tls.Certificate
	// chain and key are the certificate and its key in PEM.
	chain, key []byte
	// authorities has the certificates in PEM that clients must trust: this one, and the previous
	// one, which other managers still serve for a while.
	authorities []byte
}

// issue makes a certificate for a host. Clients also trust the previous one, if it is not nil.
func issue(host string, now time.Time, previous []byte) (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, DNSNames: []string{host},
		NotBefore: now.Add(-skew), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	chain := encode("CERTIFICATE", der)
	authorities := chain
	if previous != nil {
		authorities = append(authorities[:len(chain):len(chain)], encode("CERTIFICATE", previous)...)
	}
	return parse(map[string][]byte{
		corev1.TLSCertKey: chain, corev1.TLSPrivateKeyKey: encode("PRIVATE KEY", private), authoritiesKey: authorities,
	})
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// parse reads a certificate from the data of a Secret.
func parse(data map[string][]byte) (*certificate, error) {
	c := &certificate{chain: data[corev1.TLSCertKey], key: data[corev1.TLSPrivateKeyKey], authorities: data[authoritiesKey]}
	if len(c.authorities) == 0 {
		return nil, errors.New("the Secret has no " + authoritiesKey)
	}
	var err error
	c.pair, err = tls.X509KeyPair(c.chain, c.key)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// data returns the data of the Secret that keeps the certificate.
func (c *certificate) data() map[string][]byte {
	return map[string][]byte{corev1.TLSCertKey: c.chain, corev1.TLSPrivateKeyKey: c.key, authoritiesKey: c.authorities}
}

// valid reports whether clients that trust the authorities accept the certificate, and will do so
// for longer than renewal.
func (c *certificate) valid(host string, now time.Time) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.authorities)
	for _, at := range []time.Time{now, now.Add(renewal)} {
		if _, err := c.pair.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: at}); err != nil {
			return false
		}
	}
	return true
}
