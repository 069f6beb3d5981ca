// Package unpack turns images in the OCI layout into programs with files of their own.
package unpack

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/koboshi-dev/koboshi/internal/noun"
	"github.com/koboshi-dev/koboshi/internal/programs"
)

// refName is the annotation that names an image in a layout.
const refName = "org.opencontainers.image.ref.name"

// All unpacks the image of each program whose path is an OCI layout, below a folder. Other programs stay as
// they are.
func All(set programs.Set, dir string) (programs.Set, error) {
	var all programs.Set
	for i, p := range set {
		if p.IsLayout() {
			var err error
			if p, err = image(p, filepath.Join(dir, strconv.Itoa(i))); err != nil {
				return nil, fmt.Errorf("image %s in %s: %w", p.Image, p.Path, err)
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// image unpacks an image into a folder, and returns its program. What the program already says takes
// precedence over the image.
func image(p programs.Program, dir string) (programs.Program, error) {
	img, err := find(p)
	if err != nil {
		return p, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return p, err
	}
	own, err := program(file.Config)
	if err != nil {
		return p, err
	}
	if err := extract(img, dir); err != nil {
		return p, err
	}
	own.Image, own.Root = p.Image, dir
	if len(p.Args) > 0 {
		own.Args = p.Args
	}
	for name, value := range p.Env {
		own.Env[name] = value
	}
	if p.User != nil {
		own.User = p.User
	}
	if info, err := os.Lstat(own.File()); err != nil || info.IsDir() { // a link may lead to another file of the image
		return p, fmt.Errorf("its entrypoint %s is not a file of the image", own.Path)
	}
	return own, nil
}

// program returns the program of an image's configuration.
func program(c v1.Config) (p programs.Program, err error) {
	if len(c.Entrypoint) != 1 || !path.IsAbs(c.Entrypoint[0]) {
		return p, fmt.Errorf("its entrypoint %q is not the absolute path of one program, and only such images can be run", c.Entrypoint)
	}
	p = programs.Program{Path: c.Entrypoint[0], Args: c.Cmd, WorkingDir: c.WorkingDir, Env: map[string]string{}}
	for _, entry := range c.Env {
		name, value, _ := strings.Cut(entry, "=")
		p.Env[name] = value
	}
	user, _, _ := strings.Cut(c.User, ":")
	if user == "" {
		user = "0"
	}
	uid, err := strconv.ParseInt(user, 10, 64)
	if err != nil {
		return p, fmt.Errorf("its user is %q, and only numbers can be resolved; set user in the file of --config", user)
	}
	p.User = &uid
	return p, nil
}

// find returns the image for this machine in a layout. If the layout has several, it is the one with the tag of
// the program's image.
func find(p programs.Program) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(p.Path)
	if err != nil {
		return nil, err
	}
	found, err := images(index)
	if err != nil {
		return nil, err
	}
	if indexes := slices.DeleteFunc(slices.Clone(found), func(d v1.Descriptor) bool { return !d.MediaType.IsIndex() }); len(indexes) == 1 {
		found = indexes // the others are signatures
	}
	if len(found) == 1 {
		return native(index, found[0])
	}
	for _, d := range found {
		if tag := d.Annotations[refName]; tag != "" && (p.Image == tag || strings.HasSuffix(p.Image, ":"+tag)) {
			return native(index, d)
		}
	}
	return nil, fmt.Errorf("the layout has %s, and none with this tag", noun.Count(len(found), "image"))
}

// images lists the images of a layout, without the artifacts that refer to them.
func images(index v1.ImageIndex) (found []v1.Descriptor, err error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, d := range manifest.Manifests {
		if d.MediaType.IsIndex() || d.MediaType.IsImage() && slices.Contains(ofImages, types.MediaType(d.ArtifactType)) {
			found = append(found, d)
		}
	}
	return found, nil
}

// ofImages are the artifact types in the descriptors of images: none, or that of their configuration.
var ofImages = []types.MediaType{"", types.OCIConfigJSON, types.DockerConfigJSON}

// native returns the image for this machine's platform. Containers run Linux.
func native(index v1.ImageIndex, d v1.Descriptor) (v1.Image, error) {
	if d.MediaType.IsImage() {
		return index.Image(d.Digest)
	}
	inner, err := index.ImageIndex(d.Digest)
	if err != nil {
		return nil, err
	}
	platforms, err := images(inner)
	if err != nil {
		return nil, err
	}
	var others []string
	for _, d := range platforms {
		if d.Platform == nil {
			continue
		}
		if d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH {
			return inner.Image(d.Digest)
		}
		others = append(others, d.Platform.String())
	}
	return nil, fmt.Errorf("it is for %s, and this machine needs linux/%s; build it with --platform linux/%[2]s", strings.Join(others, ", "), runtime.GOARCH)
}

// extract writes the files of an image to a folder that does not exist yet. mutate.Extract leaves out entries
// that would be outside of it, and the root refuses others.
func extract(img v1.Image, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	content := mutate.Extract(img)
	defer func() { _ = content.Close() }()
	for files := tar.NewReader(content); ; {
		entry, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = write(root, entry, files)
		}
		if err != nil {
			return fmt.Errorf("unpacking it: %w", err)
		}
	}
}

// write writes one entry. Devices and the like are left out, because a container gets its own.
func write(root *os.Root, entry *tar.Header, content io.Reader) error {
	name := strings.TrimPrefix(path.Clean("/"+entry.Name), "/")
	mode := entry.FileInfo().Mode()
	if name == "" {
		return nil
	}
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch entry.Typeflag {
	case tar.TypeDir:
		if err := root.MkdirAll(name, 0o755); err != nil {
			return err
		}
		return root.Chmod(name, mode.Perm()|mode&fs.ModeSticky)
	case tar.TypeSymlink:
		return root.Symlink(entry.Linkname, name)
	case tar.TypeLink:
		return root.Link(strings.TrimPrefix(path.Clean("/"+entry.Linkname), "/"), name)
	case tar.TypeReg:
		return writeFile(root, name, mode.Perm(), content)
	}
	return nil
}

func writeFile(root *os.Root, name string, perm fs.FileMode, content io.Reader) error {
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
