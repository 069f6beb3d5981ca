package ship

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/koboshi-dev/koboshi/internal/check/oncluster/place"
	"github.com/koboshi-dev/koboshi/internal/ship/image"
	"github.com/koboshi-dev/koboshi/internal/ship/publish"
)

// CheckImage describes the image for the Pods of koboshi check --on-cluster. It contains Koboshi, the manager,
// and the files of the project that a check reads.
type CheckImage struct {
	Reference name.Reference
	// Program is the koboshi program.
	Program string
	// Files are files and folders of the project that are needed besides those that every check reads.
	Files []string
}

// CheckResult is the image for checks on a cluster.
type CheckResult struct {
	Image  string `json:"image"`
	Digest string `json:"digest"`
	Bytes  int64  `json:"bytes"`
	Layout string `json:"layout"`
}

// makeCheckImage makes the image for checks, and writes it to its destinations. It is for this machine's
// platform, because the koboshi program is.
func (s *shipment) makeCheckImage(ctx context.Context) error {
	if s.Check == nil {
		return nil
	}
	platform := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	if err := s.canCheckOn(platform); err != nil {
		return fmt.Errorf("making the image for checks: %w", err)
	}
	for _, other := range s.Platforms {
		if !other.Equals(platform) {
			s.Observer.Note(fmt.Sprintf("%s is only for %s, because this koboshi is; its Pods need nodes of this architecture", s.Check.Reference, platform.String()))
			break
		}
	}
	files, err := s.checkFiles(ctx, platform)
	if err != nil {
		return fmt.Errorf("making the image for checks: %w", err)
	}
	base, err := s.base(ctx, platform)
	if err != nil {
		return err
	}
	img, err := image.Make(s.Cache, image.Content{
		Platform: platform, Base: base, Files: files, Entrypoint: place.Program, Labels: s.labels(),
	}, s.at())
	if err != nil {
		return err
	}
	release := publish.Release{Index: image.Index([]v1.Platform{platform}, []v1.Image{img}, s.labels())}
	digest, err := release.Index.Digest()
	if err != nil {
		return err
	}
	size, err := layersOf(img)
	if err != nil {
		return err
	}
	s.result.Check = &CheckResult{
		Image: s.Check.Reference.String() + "@" + digest.String(), Digest: digest.String(), Bytes: size, Layout: filepath.Join(s.Dir, "check-image"),
	}
	return s.publishCheckImage(ctx, release, platform)
}

// canCheckOn returns an error if this koboshi or the manager cannot run in the image.
func (s *shipment) canCheckOn(platform v1.Platform) error {
	if runtime.GOOS != platform.OS {
		return fmt.Errorf("the image would contain this koboshi, which is for %s, and images are for linux; run koboshi ship on Linux, for example in a virtual machine", runtime.GOOS)
	}
	if !slices.ContainsFunc(s.Platforms, platform.Equals) {
		return fmt.Errorf("the image would contain this koboshi, which is for %s, and this is not among the platforms; add it with --platform", platform.String())
	}
	static, err := isStatic(s.Check.Program)
	if err != nil {
		return err
	}
	if !static {
		return fmt.Errorf("%s needs libraries of this machine; use a released koboshi, or build it with CGO_ENABLED=0", s.Check.Program)
	}
	return nil
}

// isStatic reports whether a program needs no dynamic linker.
func isStatic(program string) (bool, error) {
	file, err := elf.Open(program)
	if err != nil {
		return false, fmt.Errorf("reading the koboshi program: %w", err)
	}
	defer func() { _ = file.Close() }()
	return !slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), nil
}

// checkFiles lists the files of the image.
func (s *shipment) checkFiles(ctx context.Context, platform v1.Platform) ([]image.File, error) {
	built := s.binaries[platform.String()]
	if len(built) == 0 {
		return nil, errors.New("the manager was not built")
	}
	files := []image.File{
		{Path: place.Program, Source: s.Check.Program, Mode: 0o755},
		{Path: place.Manager, Source: built[0].Path, Mode: 0o755},
		// The module may be that of a folder above the project, which is not in the image.
		{Path: path.Join(place.Project, "go.mod"), Content: []byte("module " + s.Project.Module + "\n"), Mode: 0o644},
	}
	names, err := projectFiles(ctx, s.Project.Dir, s.Check.Files)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		source := filepath.Join(s.Project.Dir, name)
		info, err := os.Stat(source)
		if err != nil {
			return nil, err
		}
		mode := os.FileMode(0o644)
		if info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		files = append(files, image.File{Path: path.Join(place.Project, filepath.ToSlash(name)), Source: source, Mode: mode})
	}
	return files, nil
}

// publishCheckImage writes the image to the same destinations as that of the operator.
func (s *shipment) publishCheckImage(ctx context.Context, release publish.Release, platform v1.Platform) error {
	reference := s.Check.Reference
	if err := publish.Layout(s.result.Check.Layout, release, reference); err != nil {
		return err
	}
	if len(s.Load) > 0 {
		tag, err := contentTag(reference, s.result.Check.Digest)
		if err != nil {
			return err
		}
		if err := load(ctx, "", s.Load, release.Index, platform, tag); err != nil {
			return err
		}
		s.result.Check.Image = tag.String()
	}
	if s.Push {
		if err := publish.Push(ctx, release, reference, s.Observer.Pushed); err != nil {
			return err
		}
		s.result.Check.Image = reference.String() + "@" + s.result.Check.Digest
	}
	return nil
}
