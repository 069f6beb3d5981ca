package ship

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/koboshi-dev/koboshi/internal/ship/certificates"
	"github.com/koboshi-dev/koboshi/internal/ship/image"
	"github.com/koboshi-dev/koboshi/internal/ship/install"
	"github.com/koboshi-dev/koboshi/internal/ship/olm"
	"github.com/koboshi-dev/koboshi/internal/ship/olm/markers"
	"github.com/koboshi-dev/koboshi/internal/ship/provenance"
	"github.com/koboshi-dev/koboshi/internal/ship/publish"
	"github.com/koboshi-dev/koboshi/internal/ship/sign"
)

// Bundle is the bundle for OLM.
type Bundle struct {
	// Folder has the files of the bundle, and Layout its image.
	Folder string `json:"folder"`
	Layout string `json:"layout"`
	Image  string `json:"image"`
	// Signature is the tag of the image's signature.
	Signature string `json:"signature,omitempty"`
}

// bundle is the bundle for OLM while it is made.
type bundle struct {
	options   olm.Options
	files     map[string][]byte
	image     v1.Image
	reference name.Reference
}

// planBundle reads what a bundle needs besides the manifests, and makes one without the image, so that
// a project that cannot have a bundle is refused before anything is built.
func (s *shipment) planBundle(ctx context.Context) (err error) {
	if !s.OLM {
		return nil
	}
	if s.Certificates == certificates.SelfSigned {
		return errors.New("OLM gives the webhooks of a bundle their certificate, so the manager must not make its own; omit --olm or --certificates self-signed")
	}
	if s.manifests.image == "" {
		return errors.New("a bundle for OLM needs a Deployment that runs the manager, and config/default has none; omit --olm")
	}
	o := olm.Options{Package: s.Project.Name, Channels: s.Channels, Created: s.at(), Objects: s.manifests.objects, Image: s.manifests.image}
	if o.Version, err = olm.Version(s.Reference.Identifier()); err != nil {
		return err
	}
	if o.Base, err = olm.ReadBase(s.Project.Dir, s.Project.Name); err != nil {
		return err
	}
	if o.Marked, err = markers.Read(ctx, s.Project.Dir); err != nil {
		return err
	}
	if repository, ok := provenance.Repository(s.Project.Module); ok {
		o.Repository = "https://" + repository
	}
	for _, sample := range s.Project.Samples {
		o.Samples = append(o.Samples, sample.Objects...)
	}
	for _, p := range s.Platforms {
		o.Platforms = append(o.Platforms, p.String())
	}
	if _, err := olm.Make(o); err != nil {
		return err
	}
	if s.bundle.reference, err = name.NewTag(repository(s.Reference) + "-bundle:" + s.Reference.Identifier()); err != nil {
		return fmt.Errorf("the image of the bundle: %w", err)
	}
	s.bundle.options = o
	return nil
}

// makeBundle makes the bundle with the image that was built, and an image of the bundle.
func (s *shipment) makeBundle(context.Context) (err error) {
	if !s.OLM {
		return nil
	}
	o := s.bundle.options
	if o.Image, err = s.installed(); err != nil {
		return err
	}
	o.Objects = make([]unstructured.Unstructured, len(s.manifests.objects))
	for i, object := range s.manifests.objects {
		o.Objects[i] = *object.DeepCopy()
	}
	install.SetImage(o.Objects, s.manifests.image, o.Image)
	made, err := olm.Make(o)
	if err != nil {
		return err
	}
	for _, note := range made.Notes {
		s.Observer.Note(note)
	}
	var files []image.File
	for path, content := range made.Files {
		files = append(files, image.File{Path: "/" + path, Content: content, Mode: 0o644})
	}
	s.bundle.files = made.Files
	s.bundle.image, err = image.Data(s.Cache, files, made.Labels, s.at())
	return err
}

// publishBundle writes the bundle to its folder, and its image to a layout and to the registry.
func (s *shipment) publishBundle(ctx context.Context) error {
	if !s.OLM {
		return nil
	}
	digest, err := s.bundle.image.Digest()
	if err != nil {
		return err
	}
	b := &Bundle{
		Folder: filepath.Join(s.Dir, "bundle"), Layout: filepath.Join(s.Dir, "bundle-image"),
		Image: s.bundle.reference.String() + "@" + digest.String(),
	}
	if err := writeBundle(b.Folder, s.bundle.files); err != nil {
		return err
	}
	signatures, err := s.signBundle(digest)
	if err != nil {
		return err
	}
	if err := publish.DataLayout(b.Layout, s.bundle.image, signatures, s.bundle.reference); err != nil {
		return err
	}
	if s.Push {
		if err := publish.PushData(ctx, s.bundle.image, signatures, s.bundle.reference); err != nil {
			return err
		}
	}
	for _, signature := range signatures {
		b.Signature = signature.Tag()
	}
	s.result.Bundle = b
	return nil
}

// signBundle signs the image of the bundle.
func (s *shipment) signBundle(digest v1.Hash) ([]sign.Signatures, error) {
	if s.Key == nil {
		return nil, nil
	}
	signature, err := s.Key.Image(s.bundle.reference.Context(), digest)
	return []sign.Signatures{signature}, err
}

// writeBundle writes the files of a bundle, and removes manifests that an earlier bundle had. It
// refuses a folder in which it would remove other files.
func writeBundle(dir string, files map[string][]byte) error {
	manifests := filepath.Join(dir, olm.Manifests)
	entries, err := os.ReadDir(manifests)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	isBundle := func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), ".clusterserviceversion.yaml") }
	if len(entries) > 0 && !slices.ContainsFunc(entries, isBundle) {
		return fmt.Errorf("%s has files, but no ClusterServiceVersion, so it may not be a bundle; remove it, or choose another folder with --output-dir", manifests)
	}
	for path, content := range files {
		if err := writeFile(filepath.Join(dir, filepath.FromSlash(path)), content); err != nil {
			return err
		}
	}
	for _, entry := range entries {
		if files[olm.Manifests+"/"+entry.Name()] == nil && !entry.IsDir() {
			if err := os.Remove(filepath.Join(manifests, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
