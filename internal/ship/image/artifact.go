package image

import (
	"encoding/json"
	"errors"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Artifact makes a manifest with one document about an image or an index, its subject. A registry
// lists it among the referrers of the subject.
func Artifact(subject v1.Descriptor, mediaType string, document []byte) (v1.Image, error) {
	layer := static.NewLayer(document, types.MediaType(mediaType))
	described, err := partial.Descriptor(layer)
	if err != nil {
		return nil, err
	}
	config, err := partial.Descriptor(static.NewLayer(emptyConfig, types.OCIEmptyJSON))
	if err != nil {
		return nil, err
	}
	subject.Platform, subject.Annotations = nil, nil // they belong to the list in which the subject is
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: mediaType,
		Config: *config, Layers: []v1.Descriptor{*described}, Subject: &subject,
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(artifact{manifest, layer})
}

// emptyConfig is the configuration of an artifact, as the OCI image specification defines it.
var emptyConfig = []byte("{}")

type artifact struct {
	manifest []byte
	layer    v1.Layer
}

func (a artifact) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }
func (a artifact) RawManifest() ([]byte, error)        { return a.manifest, nil }
func (a artifact) RawConfigFile() ([]byte, error)      { return emptyConfig, nil }

func (a artifact) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	if own, err := a.layer.Digest(); err != nil || own != digest {
		return nil, errors.Join(err, errors.New("the artifact has no such layer"))
	}
	return a.layer, nil
}
