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
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("pulling the base %s for %s: %w", reference, platform.String(), err)
	}
	// A reference to a single image has this image for all platforms.
	if config.OS != platform.OS || config.Architecture != platform.Architecture {
		return nil, fmt.Errorf("the base %s is for %s/%s, and not for %s; choose another base, or the platforms that it has with --platform",
			reference, config.OS, config.Architecture, platform.String())
	}
	return img, nil
}

// Native returns the first of the platforms with this machine's architecture, or else the first one. The
// nodes of a local cluster run Linux, whatever this machine runs.
func Native(platforms []v1.Platform) v1.Platform {
	i := slices.IndexFunc(platforms, func(p v1.Platform) bool { return p.Architecture == runtime.GOARCH })
	return platforms[max(i, 0)]
}
