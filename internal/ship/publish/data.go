package publish

import (
	"context"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/koboshi-dev/koboshi/internal/ship/sign"
)

// DataLayout does for a single image, such as that of a bundle, what Layout does for a release.
func DataLayout(dir string, img v1.Image, signatures []sign.Signatures, reference name.Reference) error {
	return replaceLayout(dir, func(at string) error {
		target, err := layout.Write(at, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
		if err != nil {
			return err
		}
		if err := target.AppendImage(img, layout.WithAnnotations(naming(reference, "image", signatures))); err != nil {
			return err
		}
		digest, err := img.Digest()
		if err != nil {
			return err
		}
		return appendSignatures(target, digest, signatures)
	})
}

// PushData writes a single image to its registry, with the credentials that docker and podman use.
func PushData(ctx context.Context, img v1.Image, signatures []sign.Signatures, reference name.Reference) error {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if err := remote.Write(reference, img, options...); err != nil {
		return pushError(reference, err)
	}
	return pushSignatures(signatures, reference, options)
}
