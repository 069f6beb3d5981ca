// Package rootfs makes what a container sees: this machine's files, the volumes
// at their mountPaths, and the program where the Pod looks for it.
//
// The disk is not touched. Where a mountPath does not exist, its nearest
// existing parent is covered with a tmpfs that shows what was there, each entry
// as a bind mount or a symlink, and the missing folders beside it:
//
//	/etc            on disk         /etc            in the container, for /etc/site/conf
//	├── hosts                       ├── hosts       bind mount
//	├── ssl/                        ├── ssl/        bind mount
//	└── rc -> init.d/rc             ├── rc -> ...   the same symlink
//	                                └── site/conf/  the volume
//
// What is created in a covered folder itself is the container's, and vanishes
// with it; what others create there later is not seen. "/" is always covered:
// the new root belongs to the container as that of an image would. So is /dev,
// and shows the devices only that every container has.
package rootfs
