// Package rootfs assembles the files that a container sees: this machine's
// files or those of an unpacked image, the volumes at their mountPaths, and the
// program at the paths where the Pod expects it.
//
// The disk is not changed. Where a mountPath does not exist, its nearest
// existing parent is covered with a tmpfs. The tmpfs contains the missing
// folders and shows the original entries, each as a bind mount or a symlink:
//
//	/etc            on disk         /etc            in the container, for /etc/site/conf
//	├── hosts                       ├── hosts       bind mount
//	├── ssl/                        ├── ssl/        bind mount
//	└── rc -> init.d/rc             ├── rc -> ...   the same symlink
//	                                └── site/conf/  the volume
//
// A file that is created directly in a covered folder belongs to the container
// and vanishes with it. Files that other programs create later in the original
// folder do not appear in the container. "/" is always covered: the new root
// belongs to the container, like the root of an image. /dev is covered as well
// and shows only the devices that every container has.
package rootfs
