// Package programs maps images to programs on this machine.
package programs

import (
	_ "crypto/sha256" // for digests in images
	_ "crypto/sha512" // for digests in images
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/distribution/reference"
)

// DefaultUser is the uid that a program sees as its own by default: the user that
// distroless images call nonroot. It satisfies runAsNonRoot.
const DefaultUser int64 = 65532

// maxUser is the largest uid; the next larger number means "none".
const maxUser = 1<<32 - 2

// A Program is the program that replaces an image.
type Program struct {
	// Image is the image as the user wrote it. An image with a tag or digest matches only
	// that tag or digest; an image without either matches all images of that name.
	Image string `json:"image" yaml:"image"`
	// Path is the absolute path of an executable, or of an image in the OCI layout until Unpack has made
	// a program of it.
	Path string `json:"path" yaml:"path"`
	// Root is the folder with the files of an unpacked image, in which Path is. Empty means the files of
	// this machine.
	Root string `json:"root,omitempty" yaml:"-"`
	// Args are the image's CMD: the arguments used if the Pod has neither args
	// nor a command.
	Args []string `json:"args,omitempty" yaml:"args"`
	// WorkingDir is the default working directory. Empty means the folder in which
	// koboshi up was started.
	WorkingDir string `json:"workingDir,omitempty" yaml:"workingDir"`
	// Env is the image's environment; the Pod's variables take precedence.
	Env map[string]string `json:"env,omitempty" yaml:"env"`
	// User is the default uid that the program sees as its own. Nil means
	// DefaultUser. Outside its namespace the program always runs as the invoking user.
	User *int64 `json:"user,omitempty" yaml:"user"`
}

// A Set holds programs. If several programs match an image equally well, the first program
// wins.
type Set []Program

// UID returns the default uid that the program sees as its own.
func (p Program) UID() int64 {
	if p.User == nil {
		return DefaultUser
	}
	return *p.User
}

// File returns the path of the executable on this machine.
func (p Program) File() string { return filepath.Join(p.Root, p.Path) }

// IsLayout reports whether Path is an image in the OCI layout.
func (p Program) IsLayout() bool {
	_, err := os.Stat(filepath.Join(p.Path, "oci-layout"))
	return err == nil
}

// Parse parses IMAGE=PATH. A relative path is relative to the current directory.
func Parse(flag string) (Program, error) {
	image, path, found := strings.Cut(flag, "=")
	if !found {
		return Program{}, fmt.Errorf("%q is not of the form IMAGE=PATH; an example is web=./bin/web", flag)
	}
	return Program{Image: image, Path: path}.resolved("")
}

// resolved validates the program and makes its paths absolute. Relative paths start at
// dir; an empty dir means the current directory.
func (p Program) resolved(dir string) (Program, error) {
	if p.Image == "" {
		return p, errors.New("the image is empty; write the image as it is written in the Pods, such as web=./bin/web")
	}
	if _, err := parseImage(p.Image); err != nil {
		return p, fmt.Errorf("%q is not an image: %w; write the image as it is written in the Pods", p.Image, err)
	}
	if p.Path == "" {
		return p, fmt.Errorf("image %s has no path; name the program to run for it", p.Image)
	}
	var err error
	if p.Path, err = absolute(dir, p.Path); err != nil {
		return p, err
	}
	if !p.IsLayout() {
		if err := executable(p.Path); err != nil {
			return p, fmt.Errorf("image %s: %w", p.Image, err)
		}
	}
	if p.WorkingDir != "" {
		if p.WorkingDir, err = absolute(dir, p.WorkingDir); err != nil {
			return p, err
		}
		if info, err := os.Stat(p.WorkingDir); err != nil || !info.IsDir() {
			return p, fmt.Errorf("image %s: workingDir %s is not a folder; create the folder, or name another one", p.Image, p.WorkingDir)
		}
	}
	for name, value := range p.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return p, fmt.Errorf("image %s: %q cannot be an environment variable; rename it", p.Image, name)
		}
	}
	if p.User != nil && (*p.User < 0 || *p.User > maxUser) {
		return p, fmt.Errorf("image %s: user %d is not a uid; use 0 to %d", p.Image, *p.User, int64(maxUser))
	}
	return p, nil
}

func absolute(dir, path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Abs(path)
}

// executable checks that path is an executable file. The content of the file does not
// matter here; a script is fine.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist; build the program first, or correct the path", path)
	case err != nil:
		return fmt.Errorf("%w; correct the path", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; name the program itself, or a folder with an image in the OCI layout", path)
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not executable; run chmod +x, or name another program", path)
	}
	return nil
}

// image is a parsed reference to an image. If it has neither a tag nor a digest, a
// program's image stands for all images of that name, and a Pod's image stands for the
// tag latest.
type image struct {
	name, tag, digest string
}

func parseImage(s string) (image, error) {
	named, err := reference.ParseNormalizedNamed(s)
	if err != nil {
		return image{}, err
	}
	parsed := image{name: named.Name()}
	if tagged, ok := named.(reference.Tagged); ok {
		parsed.tag = tagged.Tag()
	}
	if digested, ok := named.(reference.Digested); ok {
		parsed.digest = digested.Digest().String()
	}
	return parsed, nil
}

// Lookup returns the program for an image of a Pod. It prefers a program with the
// digest of the image, then one with its tag, then one with only its name.
func (s Set) Lookup(podImage string) (Program, bool) {
	pod, err := parseImage(podImage)
	if err != nil {
		return Program{}, false
	}
	if pod.tag == "" && pod.digest == "" {
		pod.tag = "latest"
	}
	var found Program
	best := -1
	for _, p := range s {
		if fit := p.fit(pod); fit > best {
			found, best = p, fit
		}
	}
	return found, best >= 0
}

// fit returns how closely the program matches an image; -1 means not at all.
func (p Program) fit(pod image) int {
	own, err := parseImage(p.Image)
	switch {
	case err != nil, own.name != pod.name:
		return -1
	// A digest determines the content of an image, so a tag given with it means nothing.
	case own.digest != "" && own.digest == pod.digest:
		return 2
	case own.digest == "" && own.tag != "" && own.tag == pod.tag:
		return 1
	case own.digest == "" && own.tag == "":
		return 0
	}
	return -1
}

// Any reports whether at least one of the images is mapped to a program.
func (s Set) Any(images ...string) bool {
	for _, image := range images {
		if _, found := s.Lookup(image); found {
			return true
		}
	}
	return false
}

// Add appends more programs. It fails if two programs have the same image.
func (s Set) Add(more ...Program) (Set, error) {
	for _, p := range more {
		own, err := parseImage(p.Image)
		if err != nil {
			return nil, fmt.Errorf("%q is not an image: %w", p.Image, err)
		}
		for _, earlier := range s {
			if other, err := parseImage(earlier.Image); err == nil && other == own {
				return nil, fmt.Errorf("image %s has two programs, %s and %s; remove one", p.Image, earlier.Path, p.Path)
			}
		}
		s = append(s, p)
	}
	return s, nil
}
