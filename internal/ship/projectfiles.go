package ship

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// readByChecks are the files and folders of a project that every check reads, if they exist. check is where
// this repository's operators have their scenarios.
var readByChecks = []string{"PROJECT", "koboshi.yaml", "config", "check", "scenarios"}

// projectFiles lists the files of a project that a check needs, relative to its folder: those that every check
// reads, its Go files, from which a check reads what the manager does, and those that the user names. Hidden
// files are left out, and so are files that git ignores, because these may be a person's own: keys, for
// example. A file that the user names is not left out.
func projectFiles(ctx context.Context, dir string, named []string) ([]string, error) {
	found := map[string]bool{}
	for _, path := range readByChecks {
		if err := addFiles(found, dir, path, func(string) bool { return true }); err != nil {
			return nil, err
		}
	}
	isGo := func(name string) bool { return strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") }
	if err := addFiles(found, dir, ".", isGo); err != nil {
		return nil, err
	}
	if err := withoutIgnored(ctx, dir, found); err != nil {
		return nil, err
	}
	for _, path := range named {
		if !filepath.IsLocal(path) {
			return nil, fmt.Errorf("--check-files %s is not in the project; name a file or a folder of the project", path)
		}
		if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
			return nil, fmt.Errorf("--check-files: %w; build it first, or omit it", err)
		}
		if err := addFiles(found, dir, filepath.Clean(path), func(string) bool { return true }); err != nil {
			return nil, err
		}
	}
	var all []string
	for path := range found {
		all = append(all, path)
	}
	slices.Sort(all)
	return all, nil
}

// notRead are the folders in which a check reads no Go file.
var notRead = []string{"bin", "dist", "testdata", "vendor"}

// addFiles adds the regular files at or below a path that match.
func addFiles(found map[string]bool, dir, path string, matches func(name string) bool) error {
	top := filepath.Join(dir, path)
	return filepath.WalkDir(top, func(at string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && at == top {
			return nil
		}
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(entry.Name(), ".") && at != top
		if entry.IsDir() {
			if hidden || path == "." && slices.Contains(notRead, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		relative, err := filepath.Rel(dir, at)
		if err == nil && !hidden && entry.Type().IsRegular() && matches(entry.Name()) {
			found[relative] = true
		}
		return err
	})
}

// withoutIgnored removes the files that git ignores. Without git or a repository, it removes none.
func withoutIgnored(ctx context.Context, dir string, found map[string]bool) error {
	if exec.CommandContext(ctx, "git", "-C", dir, "rev-parse", "--git-dir").Run() != nil {
		return nil
	}
	var names bytes.Buffer
	for path := range found {
		names.WriteString(path + "\x00")
	}
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "check-ignore", "-z", "--stdin")
	cmd.Stdin = &names
	ignored, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 { // git ignores none of them
		return nil
	}
	if err != nil {
		return fmt.Errorf("asking git which files it ignores: %w", err)
	}
	for path := range strings.SplitSeq(string(ignored), "\x00") {
		delete(found, path)
	}
	return nil
}
