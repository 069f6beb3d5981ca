package assets

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Variant returns a folder like the one from Folder, but with a path that depends on the purpose
// and on the build of the executable. The go command reuses the cached result of a suite while the
// variables that the suite has read stay the same. The go command therefore notices a different
// path, but not a different executable at the same path.
func Variant(purpose string) (string, error) {
	folder, err := Folder()
	if err != nil {
		return "", err
	}
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the running executable: %w", err)
	}
	build, err := os.Stat(exe)
	if err != nil {
		return "", fmt.Errorf("finding the running executable: %w", err)
	}
	return variant(folder, fmt.Sprint(purpose, build.Size(), build.ModTime().UnixNano()))
}

func variant(folder, key string) (string, error) {
	sum := sha256.Sum256([]byte(key))
	dir := folder + "-" + hex.EncodeToString(sum[:4])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	for _, name := range Names() {
		if err := point(filepath.Join(dir, name), filepath.Join(folder, name)); err != nil {
			return "", err
		}
	}
	now := time.Now()
	if err := os.Chtimes(dir, now, now); err != nil {
		return "", err
	}
	others, _ := filepath.Glob(folder + "-*")
	for _, other := range others {
		if info, err := os.Stat(other); err == nil && info.ModTime().Before(now.Add(-keepFor)) {
			_ = os.RemoveAll(other)
		}
	}
	return dir, nil
}
