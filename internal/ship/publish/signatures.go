package publish

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/koboshi-dev/koboshi/internal/ship/sign"
)

// ofCosign is the annotation by which cosign --local-image finds the parts of a layout, and cosignPrefix
// the beginning of its values.
const (
	ofCosign     = "kind"
	cosignPrefix = "dev.cosignproject.cosign/"
)

// naming returns the annotations of what a layout is for: its reference, and what cosign calls it if it
// is signed.
func naming(reference name.Reference, kind string, signatures []sign.Signatures) map[string]string {
	named := map[string]string{refName: reference.Identifier()}
	if len(signatures) > 0 {
		named[ofCosign] = cosignPrefix + kind
	}
	return named
}

// localKinds has the values of the annotation for the signatures of what a layout is for. Cosign can
// only use these in a layout.
var localKinds = map[sign.Kind]string{sign.Signature: "sigs", sign.Attestation: "atts"}

// appendSignatures writes the signatures to a layout, under the tags that they have in a registry. The
// layout is for the image or the index with the digest main.
func appendSignatures(target layout.Path, main v1.Hash, signatures []sign.Signatures) error {
	for _, s := range signatures {
		img, _, err := s.AddTo(nil)
		if err != nil {
			return err
		}
		named := map[string]string{refName: s.Tag()}
		if s.Subject == main {
			named[ofCosign] = cosignPrefix + localKinds[s.Kind]
		}
		if err := target.AppendImage(img, layout.WithAnnotations(named)); err != nil {
			return err
		}
	}
	return nil
}

// pushSignatures adds signatures to a registry.
func pushSignatures(all []sign.Signatures, reference name.Reference, options []remote.Option) error {
	for _, s := range all {
		if err := pushSignature(s, reference.Context(), options); err != nil {
			return pushError(reference, fmt.Errorf("the signature %s: %w", s.Tag(), err))
		}
	}
	return nil
}

// pushSignature adds signatures to those that the subject has in its registry, because the same
// image may be signed with several keys.
func pushSignature(s sign.Signatures, repository name.Repository, options []remote.Option) error {
	tag := repository.Tag(s.Tag())
	base, err := remote.Image(tag, options...)
	if missing(err) {
		base, err = nil, nil
	}
	if err != nil {
		return err
	}
	img, changed, err := s.AddTo(base)
	if err != nil || !changed {
		return err
	}
	return remote.Write(tag, img, options...)
}

func missing(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}
