package assets

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tempPrefix is the prefix of the names of incomplete files.
const tempPrefix = ".koboshi-"

// stale is the age at which an incomplete file is assumed to be left by a killed process, because
// no copy takes that long.
const stale = time.Hour

func tempName(dir string) string { return filepath.Join(dir, tempPrefix+rand.Text()) }

// replace replaces name, in one step, with the file that fill makes.
func replace(name string, fill func(temp string) error) error {
	temp := tempName(filepath.Dir(name))
	err := fill(temp)
	if err == nil {
		err = os.Rename(temp, name)
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}

// removeLeftovers removes the files that killed processes left in dir.
func removeLeftovers(dir string) {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), tempPrefix) {
			continue
		}
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > stale {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
}

// copyFile makes a new executable file with the content of from.
func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	// Chmod overrides the umask, because several users may share the folder. The content is
	// synced before the rename, because otherwise a power cut could leave an empty file
	// under the final name.
	return errors.Join(err, out.Chmod(0o755), out.Sync(), out.Close())
}
