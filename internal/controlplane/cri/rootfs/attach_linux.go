package rootfs

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Attach makes the mounts in the mount namespace of the calling thread, and keeps everything
// else, including /dev. Attach covers the root folder only if a mount point in it is missing. The
// staging folder is an empty folder on which Attach may mount. The other requirements are the
// same as for Plan.Apply.
func Attach(staging string, mounts []Mount) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("separating mounts: %w", err)
	}
	mounts = slices.Clone(mounts)
	slices.SortStableFunc(mounts, func(a, b Mount) int { return depth(a.Target) - depth(b.Target) })
	trees, err := take(mounts)
	defer closeAll(trees)
	if err != nil {
		return err
	}
	made := covers{staging: staging, own: map[uint64]bool{}}
	if slices.ContainsFunc(mounts, atRoot) {
		if err := made.root(""); err != nil {
			return err
		}
	}
	if err := (Plan{}).prepare(&made, mounts, trees); err != nil {
		return err
	}
	for i, m := range mounts {
		if err := attach(trees[i], m, below(mounts, m.Target)); err != nil {
			return err
		}
	}
	return nil
}

// atRoot reports whether the mount point needs a new entry in the root folder.
func atRoot(m Mount) bool {
	parent, _, err := existing(m.Target)
	return err == nil && parent == "/"
}
