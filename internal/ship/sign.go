package ship

import (
	"context"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/koboshi-dev/koboshi/internal/ship/sign"
)

// sign signs the index, the image for each platform, and the statements about them. A registry or a
// mirror may have only one of the platforms, whose digest the signature of the index does not name.
func (s *shipment) sign(context.Context) error {
	if s.Key == nil {
		return nil
	}
	index, err := v1.NewHash(s.result.Digest)
	if err != nil {
		return err
	}
	digests := []v1.Hash{index}
	for _, img := range s.images {
		digest, err := img.Digest()
		if err != nil {
			return err
		}
		digests = append(digests, digest)
	}
	for _, digest := range digests {
		if err := s.addSignatures(s.Key.Image(s.Reference.Context(), digest)); err != nil {
			return err
		}
	}
	for _, statement := range s.statements {
		if err := s.addSignatures(s.Key.Statement(statement)); err != nil {
			return err
		}
	}
	return nil
}

func (s *shipment) addSignatures(signatures sign.Signatures, err error) error {
	if err != nil {
		return err
	}
	s.release.Signatures = append(s.release.Signatures, signatures)
	s.result.Signatures = append(s.result.Signatures, signatures.Tag())
	return nil
}
