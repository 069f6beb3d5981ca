// Package programs knows which image stands for which program of this machine.
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

// DefaultUser is the uid a program sees as its own unless it says otherwise:
// the one that distroless images call nonroot. With it runAsNonRoot holds.
const DefaultUser int64 = 65532

// maxUser is the greatest uid; the one above it means "none".
const maxUser = 1<<32 - 2

// A Program is what an image stands for.
type Program struct {
	// Image is as the user wrote it. With a tag or digest it is that one only;
	// without either it is every tag and digest of that name.
	Image string `json:"image" yaml:"image"`
	// Path is the absolute path of an executable.
	Path string `json:"path" yaml:"path"`
	// Args are what an image has as CMD: given to the program unless the Pod
	// gives args or a command.
	Args []string `json:"args,omitempty" yaml:"args"`
	// WorkingDir is where the program starts unless the Pod says otherwise.
	// Empty means the folder koboshi up was started in.
	WorkingDir string `json:"workingDir,omitempty" yaml:"workingDir"`
	// Env is the image's environment; of two values for a name the Pod's counts.
	Env map[string]string `json:"env,omitempty" yaml:"env"`
	// User is the uid that the program sees as its own unless the Pod says
	// otherwise. Nil means DefaultUser. Outside it is always the invoking user.
	User *int64 `json:"user,omitempty" yaml:"user"`
}

// A Set holds programs. Of those that match an image equally well, the first counts.
type Set []Program

// UID is the uid that the program sees as its own unless the Pod says otherwise.
func (p Program) UID() int64 {
	if p.User == nil {
		return DefaultUser
	}
	return *p.User
}

// Parse reads IMAGE=PATH. A relative path is below the current directory.
func Parse(flag string) (Program, error) {
	image, path, found := strings.Cut(flag, "=")
	if !found {
		return Program{}, fmt.Errorf("%q is not IMAGE=PATH; write for example web=./bin/web", flag)
	}
	return Program{Image: image, Path: path}.resolved("")
}

// resolved checks the program and makes its paths absolute; dir is what they
// are relative to, and empty means the current directory.
func (p Program) resolved(dir string) (Program, error) {
	if p.Image == "" {
		return p, errors.New("the image is empty; name the one that the Pods have, such as web=./bin/web")
	}
	if _, err := parseImage(p.Image); err != nil {
		return p, fmt.Errorf("%q is no image: %w; write it as the Pods do", p.Image, err)
	}
	if p.Path == "" {
		return p, fmt.Errorf("image %s has no path; name the program that it stands for", p.Image)
	}
	var err error
	if p.Path, err = absolute(dir, p.Path); err != nil {
		return p, err
	}
	if err := executable(p.Path); err != nil {
		return p, fmt.Errorf("image %s: %w", p.Image, err)
	}
	if p.WorkingDir != "" {
		if p.WorkingDir, err = absolute(dir, p.WorkingDir); err != nil {
			return p, err
		}
		if info, err := os.Stat(p.WorkingDir); err != nil || !info.IsDir() {
			return p, fmt.Errorf("image %s: workingDir %s is no folder; create it, or name another", p.Image, p.WorkingDir)
		}
	}
	for name, value := range p.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return p, fmt.Errorf("image %s: env %q cannot be a variable of a process; rename it", p.Image, name)
		}
	}
	if p.User != nil && (*p.User < 0 || *p.User > maxUser) {
		return p, fmt.Errorf("image %s: user %d is no uid; it may be 0 to %d", p.Image, *p.User, int64(maxUser))
	}
	return p, nil
}

func absolute(dir, path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Abs(path)
}

// executable checks that path is a file that can be run. What it holds is seen
// when it starts: a script is as good as a binary.
func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no %s; build the program first, or correct the path", path)
	case err != nil:
		return fmt.Errorf("%w; correct the path", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file; name the program itself", path)
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not executable; chmod +x it, or name a program", path)
	}
	return nil
}

// image is a reference to one, taken apart. Without a tag and a digest it
// stands for all of that name when it is a program's, and for tag latest when
// it is a Pod's.
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

// Lookup finds the program that an image of a Pod stands for: the one with the
// image's digest before the one with its tag before the one with its name alone.
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

// fit tells how closely the program names an image; -1 is not at all.
func (p Program) fit(pod image) int {
	own, err := parseImage(p.Image)
	switch {
	case err != nil, own.name != pod.name:
		return -1
	// The digest says what is in an image; the tag beside it is decoration.
	case own.digest != "" && own.digest == pod.digest:
		return 2
	case own.digest == "" && own.tag != "" && own.tag == pod.tag:
		return 1
	case own.digest == "" && own.tag == "":
		return 0
	}
	return -1
}

// Any reports whether one of the images stands for a program.
func (s Set) Any(images ...string) bool {
	for _, image := range images {
		if _, found := s.Lookup(image); found {
			return true
		}
	}
	return false
}

// Add appends the programs of more. An image that s or more itself has already
// is refused.
func (s Set) Add(more ...Program) (Set, error) {
	for _, p := range more {
		own, err := parseImage(p.Image)
		if err != nil {
			return nil, fmt.Errorf("%q is no image: %w", p.Image, err)
		}
		for _, earlier := range s {
			if other, err := parseImage(earlier.Image); err == nil && other == own {
				return nil, fmt.Errorf("image %s stands for %s and for %s; leave one out", p.Image, earlier.Path, p.Path)
			}
		}
		s = append(s, p)
	}
	return s, nil
}
