package publish

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Pull returns the image for a platform from its registry. Its layers are downloaded when they are
// needed.
func Pull(ctx context.Context, reference name.Reference, platform v1.Platform) (v1.Image, error) {
	img, err := remote.Image(reference, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithPlatform(platform))
	if err != nil {
		return nil, fmt.Errorf("pulling the base %s for %s: %w", reference, platform.String(), err)
	}
	return img, nil
}

// Native returns the first of the platforms that this machine can run, or else the first one.
func Native(platforms []v1.Platform) v1.Platform {
	i := slices.IndexFunc(platforms, func(p v1.Platform) bool { return p.OS == runtime.GOOS && p.Architecture == runtime.GOARCH })
	return platforms[max(i, 0)]
}
