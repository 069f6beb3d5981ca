package ship

import (
	"bytes"
	"context"
	"errors"
	"os"

	"github.com/koboshi-dev/koboshi/internal/ship/certificates"
)

// certify changes where the webhooks get their certificate.
func (s *shipment) certify(context.Context) (err error) {
	if s.Certificates == "" {
		return nil
	}
	if s.manifests.image == "" {
		return errors.New("--certificates changes the Deployment of the manager, and config/default has none; add it, or omit --certificates")
	}
	// A cross-compiled program cannot be asked for its flags, but their names are in it.
	program, err := os.ReadFile(s.binaries[s.Platforms[0].String()][0].Path)
	if err != nil {
		return err
	}
	s.manifests.objects, err = certificates.Apply(s.manifests.objects, s.Certificates, certificates.Manager{
		Image: s.manifests.image, HasFlag: func(name string) bool { return bytes.Contains(program, []byte(name)) },
	})
	return err
}
