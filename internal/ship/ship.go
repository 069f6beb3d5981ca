// Package ship makes what other people install: the image of an operator, and the manifest that
// installs it.
//
//	project ──compile──▶ programs ──image──▶ index ──sbom, sign──▶ release ──publish──▶ layout, registry, nodes
//	   └────config/default──install──▶ install.yaml, which names the digest
//	                        ├──olm──▶ bundle/, and its image
//	                        └──chart──▶ Helm chart
//
// The same code gives the same files, byte for byte, on any machine.
package ship

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"

	"github.com/koboshi-dev/koboshi/internal/project"
	"github.com/koboshi-dev/koboshi/internal/ship/certificates"
	"github.com/koboshi-dev/koboshi/internal/ship/compile"
	"github.com/koboshi-dev/koboshi/internal/ship/image"
	"github.com/koboshi-dev/koboshi/internal/ship/install"
	"github.com/koboshi-dev/koboshi/internal/ship/provenance"
	"github.com/koboshi-dev/koboshi/internal/ship/publish"
	"github.com/koboshi-dev/koboshi/internal/ship/sbom"
	"github.com/koboshi-dev/koboshi/internal/ship/sign"
)

// Options says what to make, and where it goes.
type Options struct {
	Project *project.Project
	// Reference is the name of the image; nil means the image of the manager in the manifests.
	Reference name.Reference
	Platforms []v1.Platform
	// Base is the image to which the programs are added; nil means an empty image.
	Base name.Reference
	// Programs maps names of programs to their folders in the project, besides the manager.
	Programs map[string]string
	// Chart makes a Helm chart as well. WatchNamespaces is the manager's flag or variable for it.
	Chart           bool
	WatchNamespaces string
	// Certificates says where the webhooks get their certificate; empty means what the manifests say.
	Certificates certificates.Source
	// Dir is the folder for the files.
	Dir string
	// Cache is the folder for binaries and layers, which later calls use again.
	Cache string
	// Push sends the image to its registry.
	Push bool
	// OLM asks for a bundle, which these channels of a catalog offer. The first one is the default.
	OLM      bool
	Channels []string
	// Archive is a file for docker load; empty means none. Load names local clusters.
	Archive string
	Load    []publish.Target
	// Key signs the image and what is attached to it; nil means that nothing is signed. The layout and
	// the registry get the signatures, but an archive and local clusters cannot hold any.
	Key *sign.Key
	// Check says how to make the image for checks on a cluster; nil means that none is made.
	Check *CheckImage
	// Time is the time of everything in the image. The zero value means the beginning of 1970.
	Time time.Time
	// Tool names this program and its version in SBOMs.
	Tool     string
	Observer Observer
}

// Observer is told about progress, possibly from several goroutines.
type Observer interface {
	// Built is called when a program has been built.
	Built(program string, platform v1.Platform, took time.Duration)
	// Pushed is called with the number of bytes sent to a registry, and with that of all bytes.
	Pushed(done, all int64)
	Note(text string)
}

// Result lists what was made.
type Result struct {
	// Image is the reference that install.yaml contains.
	Image  string `json:"image"`
	Digest string `json:"digest"`
	// Platforms lists the images of the index.
	Platforms  []Platform `json:"platforms"`
	Layout     string     `json:"layout"`
	Provenance string     `json:"provenance"`
	Install    string     `json:"install,omitempty"`
	Bundle     *Bundle    `json:"bundle,omitempty"`
	Chart      *Chart     `json:"chart,omitempty"`
	Archive    string     `json:"archive,omitempty"`
	Pushed     bool       `json:"pushed"`
	// Signatures lists the tags of the signatures, and of the signed statements.
	Signatures []string `json:"signatures,omitempty"`
	// Check is the image for checks on a cluster, or nil.
	Check *CheckResult `json:"check,omitempty"`
}

// Platform is the image for one platform.
type Platform struct {
	Platform string `json:"platform"`
	Digest   string `json:"digest"`
	// Bytes is the size of the compressed layers.
	Bytes int64  `json:"bytes"`
	SBOM  string `json:"sbom"`
}

// Run makes everything.
func Run(ctx context.Context, o Options) (*Result, error) {
	s := &shipment{Options: o}
	for _, step := range []func(context.Context) error{
		s.readManifests, s.planBundle, s.tryChart, s.choosePrograms, s.makeImages, s.certify, s.describe, s.listModules, s.sign,
		s.makeBundle, s.publish, s.writeInstall, s.writeChart, s.publishBundle,
		s.makeCheckImage,
	} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return &s.result, nil
}

// shipment is one call of Run.
type shipment struct {
	Options
	manifests manifests
	programs  []compile.Program
	binaries  map[string][]compile.Binary
	images    []v1.Image
	release   publish.Release
	bundle    bundle
	// statements describe the images; --sign signs them.
	statements []sign.Statement
	result     Result
}

// choosePrograms lists the programs of the image: the manager, those that the options name, and
// those that other containers with the image start.
func (s *shipment) choosePrograms(context.Context) error {
	if s.Project.Main == "" {
		return errors.New("there is no main package, and an image needs a program; name its folder with --main")
	}
	dir, folder := s.Project.MainModule()
	s.programs = []compile.Program{{Name: path.Base(s.manifests.entrypoint), Dir: dir, Package: "./" + filepath.ToSlash(folder)}}
	for _, program := range slices.Sorted(maps.Keys(s.Programs)) {
		folder := s.Programs[program]
		if s.has(program) {
			return fmt.Errorf("ship.programs in koboshi.yaml names %s, which is the manager; remove the line, or set --main", program)
		}
		s.programs = append(s.programs, compile.Program{Name: program, Dir: s.Project.Dir, Package: "./" + strings.TrimPrefix(filepath.ToSlash(filepath.Clean(folder)), "./")})
	}
	for _, at := range s.manifests.programs {
		if s.has(path.Base(at)) {
			continue
		}
		dir, folder, ok := s.Project.MainNamed(path.Base(at))
		if !ok {
			return fmt.Errorf("the manifests start %s from the image, but no main package below cmd/ has this name; name its folder in koboshi.yaml under ship.programs", at)
		}
		s.programs = append(s.programs, compile.Program{Name: path.Base(at), Dir: dir, Package: "./" + filepath.ToSlash(folder)})
	}
	return nil
}

func (s *shipment) has(program string) bool {
	return slices.ContainsFunc(s.programs, func(p compile.Program) bool { return p.Name == program })
}

// makeImages builds the programs, and an image for each platform.
func (s *shipment) makeImages(ctx context.Context) (err error) {
	s.binaries, err = compile.Run(ctx, compile.Options{
		Programs: s.programs, Platforms: s.Platforms, Cache: s.Cache,
		Built: func(p v1.Platform, b compile.Binary) { s.Observer.Built(b.Name, p, b.Took) },
	})
	if err != nil {
		return err
	}
	for _, platform := range s.Platforms {
		base, err := s.base(ctx, platform)
		if err != nil {
			return err
		}
		var files []image.File
		for _, b := range s.binaries[platform.String()] {
			files = append(files, image.File{Path: path.Join(path.Dir(s.manifests.entrypoint), b.Name), Source: b.Path, Mode: 0o755})
		}
		img, err := image.Make(s.Cache, image.Content{
			Platform: platform, Base: base, Files: files, Entrypoint: s.manifests.entrypoint, Labels: s.labels(),
		}, s.at())
		if err != nil {
			return err
		}
		s.images = append(s.images, img)
	}
	s.release.Index = image.Index(s.Platforms, s.images, s.labels())
	return nil
}

// at returns the time of everything in the image.
func (s *shipment) at() time.Time {
	if s.Time.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return s.Time.UTC()
}

func (s *shipment) base(ctx context.Context, platform v1.Platform) (v1.Image, error) {
	if s.Base == nil {
		return nil, nil
	}
	return publish.Pull(ctx, s.Base, platform)
}

// labels returns the labels of the image. They depend only on the code, and not on its repository
// or its tag, so that the same code gives the same digest.
func (s *shipment) labels() map[string]string {
	labels := map[string]string{"org.opencontainers.image.title": s.Project.Name}
	if repository, ok := provenance.Repository(s.Project.Module); ok {
		labels["org.opencontainers.image.source"] = "https://" + repository
	}
	return labels
}

// describe writes where the index comes from, in a file and as an artifact that refers to the index.
func (s *shipment) describe(ctx context.Context) error {
	subject, err := partial.Descriptor(s.release.Index)
	if err != nil {
		return err
	}
	s.result.Digest = subject.Digest.String()
	b := provenance.Build{
		Source: provenance.Find(ctx, s.Project.Dir, s.Project.Module, s.Dir),
		Image:  s.Reference.Context().Name(), Digest: s.result.Digest, Programs: map[string]string{}, Tool: s.Tool,
	}
	if s.Base != nil {
		b.Base = s.Base.String()
	}
	for _, p := range s.programs {
		b.Programs[p.Name] = p.Package
	}
	for _, platform := range s.Platforms {
		b.Platforms = append(b.Platforms, platform.String())
	}
	info, err := buildinfo.ReadFile(s.binaries[b.Platforms[0]][0].Path)
	if err != nil {
		return err
	}
	b.Go = info.GoVersion
	document, err := provenance.Make(b)
	if err != nil {
		return err
	}
	artifact, err := image.Artifact(*subject, provenance.MediaType, document)
	if err != nil {
		return err
	}
	s.release.Artifacts = append(s.release.Artifacts, artifact)
	s.statements = append(s.statements, sign.Statement{Subject: subject.Digest, PredicateType: provenance.PredicateType, Text: document})
	s.result.Provenance = filepath.Join(s.Dir, "provenance.json")
	return writeFile(s.result.Provenance, document)
}

// listModules lists the modules of each image, in a file and as an artifact that refers to the image.
func (s *shipment) listModules(context.Context) error {
	for i, img := range s.images {
		platform := s.Platforms[i]
		subject, err := partial.Descriptor(img)
		if err != nil {
			return err
		}
		var paths []string
		for _, b := range s.binaries[platform.String()] {
			paths = append(paths, b.Path)
		}
		document, err := sbom.Make(sbom.Image{Name: s.Reference.Context().Name(), Digest: subject.Digest.String()}, paths, s.Tool, s.at())
		if err != nil {
			return err
		}
		artifact, err := image.Artifact(*subject, sbom.MediaType, document)
		if err != nil {
			return err
		}
		s.release.Artifacts = append(s.release.Artifacts, artifact)
		statement, err := sign.About(s.Reference.Context(), subject.Digest, sbom.PredicateType, document)
		if err != nil {
			return err
		}
		s.statements = append(s.statements, statement)
		file := filepath.Join(s.Dir, "sbom", strings.ReplaceAll(platform.String(), "/", "_")+".spdx.json")
		if err := writeFile(file, document); err != nil {
			return err
		}
		size, err := layersOf(img)
		if err != nil {
			return err
		}
		s.result.Platforms = append(s.result.Platforms, Platform{platform.String(), subject.Digest.String(), size, file})
	}
	return nil
}

func layersOf(img v1.Image) (bytes int64, err error) {
	layers, err := img.Layers()
	for _, layer := range layers {
		size, err := layer.Size()
		if err != nil {
			return 0, err
		}
		bytes += size
	}
	return bytes, err
}

// publish writes the image to all its destinations.
func (s *shipment) publish(ctx context.Context) error {
	s.result.Layout = filepath.Join(s.Dir, "image")
	if err := publish.Layout(s.result.Layout, s.release, s.Reference); err != nil {
		return err
	}
	if s.Archive != "" || len(s.Load) > 0 {
		if err := s.load(ctx); err != nil {
			return err
		}
	}
	if s.Push {
		if err := publish.Push(ctx, s.release, s.Reference, s.Observer.Pushed); err != nil {
			return err
		}
		s.result.Pushed = true
	}
	return nil
}

// load writes the archive, and loads it into local clusters.
func (s *shipment) load(ctx context.Context) error {
	tag, err := contentTag(s.Reference, s.result.Digest)
	if err != nil {
		return err
	}
	s.result.Archive = s.Archive
	return load(ctx, s.Archive, s.Load, s.release.Index, publish.Native(s.Platforms), tag)
}

// load writes an image to an archive, and loads it into local clusters. An archive has one platform. If no
// archive is named, it is temporary.
func load(ctx context.Context, archive string, targets []publish.Target, index v1.ImageIndex, platform v1.Platform, tag name.Tag) error {
	if archive == "" {
		folder, err := os.MkdirTemp("", "koboshi-image-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(folder) }()
		archive = filepath.Join(folder, "image.tar")
	}
	if err := publish.Archive(archive, index, platform, tag); err != nil {
		return err
	}
	for _, target := range targets {
		if err := target.Load(ctx, archive); err != nil {
			return err
		}
	}
	return nil
}

// contentTag returns an image with a tag that is made from its digest. Nodes know an image that was
// loaded only by its tag, and a tag that stays the same would change nothing in a cluster in which the
// operator already runs.
func contentTag(reference name.Reference, digest string) (name.Tag, error) {
	_, hex, _ := strings.Cut(digest, ":")
	return name.NewTag(repository(reference) + ":sha-" + hex[:12])
}

// repository returns an image without its tag, as the user wrote it.
func repository(reference name.Reference) string {
	return strings.TrimSuffix(reference.String(), ":"+reference.Identifier())
}

// installed returns the reference to the image in the manifests. It contains the digest, so that no other
// image can be installed. If the image is only loaded, or written to an archive, the reference has a tag made
// from the digest instead; see contentTag.
func (s *shipment) installed() (string, error) {
	if s.Push || len(s.Load) == 0 && s.Archive == "" {
		return s.Reference.String() + "@" + s.result.Digest, nil
	}
	tag, err := contentTag(s.Reference, s.result.Digest)
	return tag.String(), err
}

// writeInstall writes the manifest that installs the operator with the image.
func (s *shipment) writeInstall(context.Context) (err error) {
	if s.result.Image, err = s.installed(); err != nil {
		return err
	}
	if len(s.Load) == 0 && s.Archive == "" && !s.Push {
		s.Observer.Note("the image is only in " + s.result.Layout + "; no cluster can run it before you push it with --push, or load it with --load")
	}
	if s.manifests.image == "" {
		s.Observer.Note("there is no install.yaml, because no workload in config/default runs the manager")
		return nil
	}
	install.SetImage(s.manifests.objects, s.manifests.image, s.result.Image)
	install.Sort(s.manifests.objects)
	text, err := install.YAML(fmt.Sprintf("# Installs %s: kubectl apply --server-side -f install.yaml\n", s.Project.Name), s.manifests.objects)
	if err != nil {
		return err
	}
	s.result.Install = filepath.Join(s.Dir, "install.yaml")
	return writeFile(s.result.Install, text)
}

// writeFile writes a file and its folder. An interrupted call leaves the file as it was.
func writeFile(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	temporary := file + ".tmp"
	if err := os.WriteFile(temporary, data, 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, file)
}
