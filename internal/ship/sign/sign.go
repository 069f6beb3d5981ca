package sign

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
)

// The media types of the layers, and their annotations, as in cosign's specifications
// specs/SIGNATURE_SPEC.md and specs/ATTESTATION_SPEC.md.
const (
	payloadType         = "application/vnd.dev.cosign.simplesigning.v1+json"
	envelopeType        = "application/vnd.dsse.envelope.v1+json"
	statementType       = "application/vnd.in-toto+json"
	signatureAnnotation = "dev.cosignproject.cosign/signature"
	predicateAnnotation = "predicateType"
)

// Kind is the kind of the layers in an image of signatures.
type Kind string

const (
	// Signature is the kind of images whose layers are signatures of an image.
	Signature Kind = "sig"
	// Attestation is the kind of images whose layers are signed statements about an image.
	Attestation Kind = "att"
)

// Signatures are the layers that a release adds to the signatures of an image, its subject.
type Signatures struct {
	Subject v1.Hash
	Kind    Kind
	Layers  []mutate.Addendum
}

// Tag returns the tag under which cosign looks for the signatures, in the repository of the subject.
func (s Signatures) Tag() string {
	return s.Subject.Algorithm + "-" + s.Subject.Hex + "." + string(s.Kind)
}

// AddTo returns an image with the signatures of base and those of s, and false if base has them already.
// A nil base means an image without signatures.
func (s Signatures) AddTo(base v1.Image) (img v1.Image, changed bool, err error) {
	if base == nil {
		base = mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	}
	manifest, err := base.Manifest()
	if err != nil {
		return nil, false, err
	}
	var missing []mutate.Addendum
	for _, layer := range s.Layers {
		digest, err := layer.Layer.Digest()
		if err != nil {
			return nil, false, err
		}
		if !slices.ContainsFunc(manifest.Layers, func(d v1.Descriptor) bool {
			return d.Digest == digest && maps.Equal(d.Annotations, layer.Annotations)
		}) {
			missing = append(missing, layer)
		}
	}
	img, err = mutate.Append(base, missing...)
	return img, len(missing) > 0, err
}

// Image signs the digest of an image or an index in a repository.
func (k *Key) Image(repository name.Repository, digest v1.Hash) (Signatures, error) {
	// The format is that of containers/image, docs/containers-signature.5.md.
	var p struct {
		Critical struct {
			Identity struct {
				Reference string `json:"docker-reference"`
			} `json:"identity"`
			Image struct {
				Digest string `json:"docker-manifest-digest"`
			} `json:"image"`
			Type string `json:"type"`
		} `json:"critical"`
		Optional map[string]string `json:"optional"`
	}
	p.Critical.Identity.Reference = repository.Name()
	p.Critical.Image.Digest = digest.String()
	p.Critical.Type = "cosign container image signature"
	payload, err := json.Marshal(p)
	if err != nil {
		return Signatures{}, err
	}
	signature, err := k.sign(payload)
	if err != nil {
		return Signatures{}, fmt.Errorf("signing %s: %w", digest, err)
	}
	return Signatures{digest, Signature, []mutate.Addendum{{
		Layer:       static.NewLayer(payload, payloadType),
		Annotations: map[string]string{signatureAnnotation: base64.StdEncoding.EncodeToString(signature)},
	}}}, nil
}

// Statement is a document about an image, its subject.
type Statement struct {
	Subject v1.Hash
	// PredicateType says what the document is.
	PredicateType string
	// Text is an in-toto statement.
	Text []byte
}

// About makes a statement about the digest of an image in a repository.
func About(repository name.Repository, digest v1.Hash, predicateType string, predicate []byte) (Statement, error) {
	type subject struct {
		Name   string            `json:"name"`
		Digest map[string]string `json:"digest"`
	}
	text, err := json.Marshal(struct {
		Type          string          `json:"_type"`
		PredicateType string          `json:"predicateType"`
		Subject       []subject       `json:"subject"`
		Predicate     json.RawMessage `json:"predicate"`
	}{"https://in-toto.io/Statement/v1", predicateType, []subject{{repository.Name(), map[string]string{digest.Algorithm: digest.Hex}}}, predicate})
	return Statement{digest, predicateType, text}, err
}

// Statement signs a statement.
func (k *Key) Statement(s Statement) (Signatures, error) {
	signature, err := k.sign(dsse.PAE(statementType, s.Text))
	if err != nil {
		return Signatures{}, fmt.Errorf("signing a statement about %s: %w", s.Subject, err)
	}
	envelope, err := json.Marshal(dsse.Envelope{
		PayloadType: statementType, Payload: base64.StdEncoding.EncodeToString(s.Text),
		Signatures: []dsse.Signature{{Sig: base64.StdEncoding.EncodeToString(signature)}},
	})
	if err != nil {
		return Signatures{}, err
	}
	return Signatures{s.Subject, Attestation, []mutate.Addendum{{
		Layer: static.NewLayer(envelope, envelopeType),
		// The signature is in the envelope, but cosign requires its annotation.
		Annotations: map[string]string{signatureAnnotation: "", predicateAnnotation: s.PredicateType},
	}}}, nil
}
