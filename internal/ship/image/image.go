// Package image makes container images of Go programs, without Docker.
//
//	programs, files ──layer──▶ Base + one layer ──▶ image ─┐
//	                   (for each platform)                 ├──▶ index
//	                                                image ─┘
//
// The digest of an index depends only on the content: no time, no user and no machine is part of
// it. The layout is that of the OCI image specification, version 1.1.
package image

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// User is the user and the group as which programs run: those of distroless images, which
// kubebuilder's Deployments expect.
const User = "65532:65532"

// certificates is the path in which Go looks first for the certificate authorities of a system.
const certificates = "/etc/ssl/certs/ca-certificates.crt"

// Content is an image for one platform.
type Content struct {
	Platform v1.Platform
	// Base is the image to which the files are added; nil means an empty image.
	Base v1.Image
	// Files are added in one layer.
	Files []File
	// Entrypoint is the path of the program that runs by default.
	Entrypoint string
	Labels     map[string]string
}

// Make makes an image whose files and whose configuration have the given time. Layers are kept in
// the cache folder.
func Make(cache string, c Content, at time.Time) (v1.Image, error) {
	base := c.Base
	files := c.Files
	if base == nil {
		base = mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
		files = slices.Concat(system(), files)
	}
	layer, err := newLayer(cache, files, at)
	if err != nil {
		return nil, fmt.Errorf("writing the layer for %s: %w", c.Platform.String(), err)
	}
	img, err := mutate.Append(base, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: at}, CreatedBy: "koboshi ship", Comment: "programs"},
	})
	if err != nil {
		return nil, fmt.Errorf("adding the layer for %s to the base: %w", c.Platform.String(), err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of the base for %s: %w", c.Platform.String(), err)
	}
	return mutate.ConfigFile(img, c.configure(config.DeepCopy(), at))
}

// configure sets everything that the image does not keep from its base.
func (c *Content) configure(config *v1.ConfigFile, at time.Time) *v1.ConfigFile {
	config.Created = v1.Time{Time: at}
	config.OS, config.Architecture, config.Variant = c.Platform.OS, c.Platform.Architecture, c.Platform.Variant
	config.Config.User, config.Config.WorkingDir = User, "/"
	config.Config.Entrypoint, config.Config.Cmd = []string{c.Entrypoint}, nil
	if c.Base == nil {
		config.Config.Env = []string{"PATH=" + path.Dir(c.Entrypoint), "SSL_CERT_FILE=" + certificates}
	}
	if config.Config.Labels == nil {
		config.Config.Labels = map[string]string{}
	}
	for key, value := range c.Labels {
		config.Config.Labels[key] = value
	}
	return config
}

// Index combines images for several platforms.
func Index(platforms []v1.Platform, images []v1.Image, annotations map[string]string) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, img := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: runnable{img}, Descriptor: v1.Descriptor{Platform: &platforms[i]},
		})
	}
	annotated, ok := mutate.Annotations(index, annotations).(v1.ImageIndex)
	if !ok { // Annotations returns what it is given
		return index
	}
	return annotated
}

// runnable is an image that an index does not describe as an artifact. Otherwise, go-containerregistry
// gives its descriptor an artifactType, which docker and buildah do not do.
type runnable struct{ v1.Image }

func (runnable) ArtifactType() (string, error) { return "", nil }

// system returns what programs expect of any system: users, certificate authorities, and a folder
// for temporary files. The users are those of distroless images, and the authorities those of
// Mozilla, in the version of the module golang.org/x/crypto/x509roots. Authorities that Mozilla
// trusts only for old certificates are left out, because the file cannot express this.
func system() []File {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		_ = pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer never fails
	}
	return []File{
		{Path: certificates, Content: roots.Bytes(), Mode: 0o644},
		{Path: "/etc/group", Content: []byte("root:x:0:\nnonroot:x:65532:\n"), Mode: 0o644},
		{Path: "/etc/passwd", Content: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n"), Mode: 0o644},
		{Path: "/tmp/", Mode: fs.ModeSticky | 0o777},
	}
}
