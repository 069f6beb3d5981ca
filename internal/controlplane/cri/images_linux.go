package cri

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/koboshi-dev/koboshi/internal/programs"
)

// imageID returns the ID of an image. The ID does not depend on the content of the program, which
// may change between two starts of a container.
func imageID(p programs.Program) string {
	sum := sha256.Sum256([]byte(p.Image + "\x00" + p.File()))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// imageName returns the name that the Pod's user wrote; the kubelet passes it
// in addition to the ID.
func imageName(spec *runtimeapi.ImageSpec) string {
	if name := spec.GetUserSpecifiedImage(); name != "" {
		return name
	}
	return spec.GetImage()
}

// program returns the program of an image, by name or ID.
func (r *Runtime) program(spec *runtimeapi.ImageSpec) (programs.Program, bool) {
	for _, p := range r.config.Programs {
		if imageID(p) == spec.GetImage() {
			return p, true
		}
	}
	return r.config.Programs.Lookup(imageName(spec))
}

func unmapped(image string) error {
	return fmt.Errorf("no program is given for image %s: use koboshi up --run %s=PATH", image, image)
}

func image(p programs.Program, tags ...string) *runtimeapi.Image {
	described := &runtimeapi.Image{
		Id: imageID(p), RepoTags: tags, Uid: &runtimeapi.Int64Value{Value: p.UID()},
		Spec: &runtimeapi.ImageSpec{Image: p.Image},
		// The kubelet must not try to free disk space by removing the image.
		Pinned: true,
	}
	if info, err := os.Stat(p.File()); err == nil {
		described.Size = uint64(info.Size())
	}
	return described
}

// ListImages lists the images that stand for programs.
func (r *Runtime) ListImages(_ context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	if wanted := filter.GetImage(); wanted.GetImage() != "" {
		if p, found := r.program(wanted); found {
			return []*runtimeapi.Image{image(p, imageName(wanted))}, nil
		}
		return nil, nil
	}
	var all []*runtimeapi.Image
	for _, p := range r.config.Programs {
		all = append(all, image(p, p.Image))
	}
	return all, nil
}

// ImageStatus describes an image. An empty response means that the image does
// not exist.
func (r *Runtime) ImageStatus(_ context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	p, found := r.program(spec)
	if !found {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	return &runtimeapi.ImageStatusResponse{Image: image(p, imageName(spec))}, nil
}

// PullImage succeeds for images that stand for programs, because they are
// already present.
func (r *Runtime) PullImage(_ context.Context, spec *runtimeapi.ImageSpec, _ *runtimeapi.AuthConfig, _ *runtimeapi.PodSandboxConfig) (string, error) {
	p, found := r.program(spec)
	if !found {
		return "", unmapped(imageName(spec))
	}
	return imageID(p), nil
}

// RemoveImage does nothing, and leaves the program alone.
func (r *Runtime) RemoveImage(context.Context, *runtimeapi.ImageSpec) error { return nil }

// ImageFsInfo reports no usage, because the runtime stores no images.
func (r *Runtime) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(r.config.Dir, &stat); err != nil {
		return nil, fmt.Errorf("reading the file system of %s: %w", r.config.Dir, err)
	}
	usage := []*runtimeapi.FilesystemUsage{{
		Timestamp:  time.Now().UnixNano(),
		FsId:       &runtimeapi.FilesystemIdentifier{Mountpoint: r.config.Dir},
		UsedBytes:  &runtimeapi.UInt64Value{},
		InodesUsed: &runtimeapi.UInt64Value{},
	}}
	return &runtimeapi.ImageFsInfoResponse{ImageFilesystems: usage, ContainerFilesystems: usage}, nil
}
