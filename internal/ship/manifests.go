package ship

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/ship/install"
)

// manifests is what the project's manifests say about its image.
type manifests struct {
	objects []unstructured.Unstructured
	// image is the image of the manager as the manifests name it; empty if they do not run it.
	image string
	// entrypoint is the path of the manager in the image.
	entrypoint string
	// programs are the paths of all programs that containers start from the image.
	programs []string
}

// defaultEntrypoint is the path of the manager in kubebuilder's images.
const defaultEntrypoint = "/manager"

func (s *shipment) readManifests(context.Context) error {
	objects, notes, err := s.Project.Installation()
	if err != nil {
		return fmt.Errorf("reading the manifests of %s: %w", s.Project.Name, err)
	}
	for _, note := range notes {
		s.Observer.Note(note)
	}
	container, _ := s.Project.Container()
	m := manifests{objects: objects, image: container.Image, entrypoint: defaultEntrypoint}
	if len(container.Command) > 0 && path.IsAbs(container.Command[0]) {
		m.entrypoint = path.Clean(container.Command[0])
		if slices.Contains([]string{"sh", "bash", "ash", "dash"}, path.Base(m.entrypoint)) {
			return fmt.Errorf("the manifests start the manager with %s, and the image has no shell; change the command to %s", m.entrypoint, defaultEntrypoint)
		}
	}
	if m.image != "" {
		m.programs = install.Programs(objects, m.image)
	}
	for _, at := range m.programs {
		if !path.IsAbs(at) || path.Dir(path.Clean(at)) != path.Dir(m.entrypoint) {
			return fmt.Errorf("the manifests start %s from the image, but all programs of an image are in the folder of %s; change the command", at, m.entrypoint)
		}
	}
	s.manifests = m
	if s.Reference != nil {
		return nil
	}
	// The digest in the manifests is that of another image.
	text, _, _ := strings.Cut(cmp.Or(m.image, s.Project.Name), "@")
	if s.Reference, err = name.NewTag(text); err != nil {
		return fmt.Errorf("the image %q in the manifests: %w; name the image with --image", text, err)
	}
	return nil
}
