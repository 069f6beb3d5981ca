package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/koboshi-dev/koboshi/internal/check/process/view"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

// writeVolumes writes the files of the controller's volumes, for each instance, and makes the
// folder of its certificate.
func (l *Lab) writeVolumes() error {
	for slot := range slots {
		if l.subject(slot).Webhook.Port > 0 {
			l.certs = l.path("certs")
			if err := os.MkdirAll(l.certDir(slot), 0o700); err != nil {
				return fmt.Errorf("making the folder of a certificate: %w", err)
			}
		}
		if err := subject.WriteFiles(l.files(slot), l.subject(slot).Files); err != nil {
			return err
		}
	}
	return nil
}

// emptyVolumes removes what the controller wrote into its volumes in an earlier run.
func (l *Lab) emptyVolumes() error {
	for slot := range slots {
		if err := subject.EmptyFiles(l.files(slot), l.subject(slot).Files); err != nil {
			return err
		}
	}
	return nil
}

// volumeMounts returns the mounts that show the controller's volumes at their paths in the
// Pod, for programs with fixed paths.
func (l *Lab) volumeMounts(slot int) []view.Mount {
	s := l.subject(slot)
	needed := append([]string{l.config.Dir, s.Dir, accountFolder}, s.Command...)
	var mounts []view.Mount
	for _, volume := range s.Files {
		target := filepath.Clean(volume.Path)
		if hides(target, needed) || within(target, accountFolder) || len(volume.Files) == 0 && exists(target) {
			continue
		}
		mounts = append(mounts, view.Mount{
			Source: filepath.Join(l.files(slot), target), Target: target, Writable: len(volume.Files) == 0,
		})
	}
	for _, target := range s.Webhook.Mounts {
		if target = filepath.Clean(target); l.certs != "" && !hides(target, needed) && !within(target, accountFolder) {
			mounts = append(mounts, view.Mount{Source: l.certDir(slot), Target: target})
		}
	}
	return mounts
}

// hides reports whether a mount would hide a file that the lab or the controller needs. The
// controller's program has another path on this machine than in its image, so a mount that is
// harmless in the image may hide the program here.
func hides(target string, needed []string) bool {
	return slices.ContainsFunc(needed, func(path string) bool { return filepath.IsAbs(path) && within(path, target) })
}

// within reports whether a path is the given folder, or is inside it.
func within(path, folder string) bool {
	path, folder = real(path), real(folder)
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}

// real returns a clean path in which /run replaces /var/run, because /var/run is a symlink to /run
// on most machines.
func real(path string) string {
	path = filepath.Clean(path)
	if rest, ok := strings.CutPrefix(path, "/var/run"); ok && (rest == "" || rest[0] == '/') {
		return "/run" + rest
	}
	return path
}

// exists reports whether this machine has a file or folder at a path. An empty volume must not hide
// it, because programs may need it.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
