// Package publish writes images to where clusters and tools find them: a registry, a folder in the
// OCI layout, an archive, or the nodes of a local cluster.
package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/koboshi-dev/koboshi/internal/ship/sign"
)

// refName is the annotation that names an image in a layout, as the OCI image specification
// defines it.
const refName = "org.opencontainers.image.ref.name"

// Release is an index with the artifacts that refer to it or to its images, and with signatures.
type Release struct {
	Index      v1.ImageIndex
	Artifacts  []v1.Image
	Signatures []sign.Signatures
}

// Layout writes a release to a folder in the OCI image layout, and replaces the layout that the folder
// had. It refuses a folder that has anything else.
func Layout(dir string, r Release, reference name.Reference) error {
	return replaceLayout(dir, func(at string) error { return writeLayout(at, r, reference) })
}

// replaceLayout lets a function write a layout to a new folder, and then replaces another folder by it.
func replaceLayout(dir string, write func(at string) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("writing the OCI layout %s: %w", dir, err)
		}
	}()
	if err := replaceable(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(filepath.Dir(dir), ".layout-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	if err := os.Chmod(temporary, 0o755); err != nil {
		return err
	}
	if err := write(temporary); err != nil {
		return err
	}
	return replace(dir, temporary)
}

// replace moves a folder to another place, and removes the folder that was there before.
func replace(dir, by string) error {
	old := by + ".old"
	defer func() { _ = os.RemoveAll(old) }()
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Rename(by, dir)
}

// ofLayout lists the entries of a layout, as the OCI image specification defines them.
var ofLayout = []string{"blobs", "index.json", "oci-layout"}

// replaceable returns an error if the folder has something that does not belong to a layout.
func replaceable(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !slices.Contains(ofLayout, entry.Name()) {
			return fmt.Errorf("the folder also has %s, which would be lost; remove it, or choose another folder with --output-dir", entry.Name())
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "oci-layout")); err != nil {
		return fmt.Errorf("the folder has no valid layout that could be replaced: %w; remove it, or choose another folder with --output-dir", err)
	}
	return nil
}

func writeLayout(dir string, r Release, reference name.Reference) error {
	target, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	if err := target.AppendIndex(r.Index, layout.WithAnnotations(naming(reference, "imageIndex", r.Signatures))); err != nil {
		return err
	}
	for _, a := range r.Artifacts {
		if err := target.AppendImage(a); err != nil {
			return err
		}
	}
	index, err := r.Index.Digest()
	if err != nil {
		return err
	}
	return appendSignatures(target, index, r.Signatures)
}

// Push writes a release to its registry, with the credentials that docker and podman use. Progress
// is called with the number of bytes that were sent, and with that of all bytes.
func Push(ctx context.Context, r Release, reference name.Reference, progress func(done, all int64)) error {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	updates := make(chan v1.Update, 16)
	listened := make(chan struct{})
	go func() {
		defer close(listened)
		for u := range updates {
			if progress != nil && u.Error == nil {
				progress(u.Complete, u.Total)
			}
		}
	}()
	err := remote.WriteIndex(reference, r.Index, append(options, remote.WithProgress(updates))...)
	<-listened // WriteIndex has closed the channel
	if err != nil {
		return pushError(reference, err)
	}
	for _, a := range r.Artifacts {
		digest, err := a.Digest()
		if err != nil {
			return err
		}
		if err := remote.Write(reference.Context().Digest(digest.String()), a, options...); err != nil {
			return pushError(reference, fmt.Errorf("an artifact: %w", err))
		}
	}
	return pushSignatures(r.Signatures, reference, options)
}

func pushError(reference name.Reference, err error) error {
	registry := reference.Context().RegistryStr()
	return fmt.Errorf("pushing %s: %w; if the registry needs credentials, use docker login %s or podman login %s", reference, err, registry, registry)
}

// Archive writes the image for a platform to a file that docker load, podman load and kind load
// image-archive can read. An interrupted call leaves the file as it was.
func Archive(file string, index v1.ImageIndex, platform v1.Platform, reference name.Reference) error {
	img, err := imageFor(index, platform)
	if err != nil {
		return fmt.Errorf("writing the archive %s: %w", file, err)
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), ".archive-")
	if err != nil {
		return fmt.Errorf("writing the archive %s: %w", file, err)
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	err = tarball.Write(reference, img, temporary)
	err = cmp.Or(err, temporary.Chmod(0o644), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("writing the archive %s: %w", file, err)
	}
	return nil
}

func imageFor(index v1.ImageIndex, platform v1.Platform) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range manifest.Manifests {
		if d.Platform != nil && d.Platform.Satisfies(platform) {
			return index.Image(d.Digest)
		}
	}
	return nil, fmt.Errorf("there is no image for %s; add it with --platform", platform.String())
}
