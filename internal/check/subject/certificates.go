package subject

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/koboshi-dev/koboshi/internal/pki"
)

// Certificates writes tls.crt, tls.key and ca.crt for a webhook server with the given addresses
// and names into the folder dir. It creates the folder if necessary. It returns the
// certificate of the authority that clients must trust, and discards the key of the
// authority.
func Certificates(dir string, hosts []net.IP, names []string) (caPEM []byte, err error) {
	ca, err := pki.New("koboshi check: authority of webhooks")
	if err != nil {
		return nil, err
	}
	certPEM, keyPEM, err := ca.Issue(pki.Request{CommonName: "koboshi check: webhooks", Server: true, IPs: hosts, Names: names})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("writing a certificate for webhooks: %w", err)
	}
	for name, content := range map[string][]byte{"tls.crt": certPEM, "tls.key": keyPEM, "ca.crt": ca.CertPEM()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, fmt.Errorf("writing a certificate for webhooks: %w", err)
		}
	}
	return ca.CertPEM(), nil
}
