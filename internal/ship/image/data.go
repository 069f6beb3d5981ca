package image

import (
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Data makes an image that only holds files and is never run, such as a bundle for OLM. The files suit every
// platform, but the configuration of an image must name one; without an index, runtimes accept the image
// on any platform.
func Data(cache string, files []File, labels map[string]string, at time.Time) (v1.Image, error) {
	layer, err := newLayer(cache, files, at)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err := mutate.Append(base, mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: at}, CreatedBy: "koboshi ship", Comment: "files"},
	})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created = v1.Time{Time: at}
	config.OS, config.Architecture = "linux", "amd64"
	config.Config.Labels = labels
	return mutate.ConfigFile(img, config)
}
