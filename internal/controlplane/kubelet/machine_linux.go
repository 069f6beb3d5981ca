package kubelet

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/google/cadvisor/lib/model"
	"golang.org/x/sys/unix"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cadvisor"
)

// machine replaces cAdvisor, which would read cgroups and disks. The replacement provides the part
// of cAdvisor's data that can be found without reading cgroups and disks.
type machine struct {
	root string // the reported file system is the one that contains this folder
}

var _ cadvisor.Interface = machine{}

// Start does nothing, because machine watches nothing.
func (machine) Start() error { return nil }

// MachineInfo returns the size and identity of this machine.
func (machine) MachineInfo(klog.Logger) (*model.MachineInfo, error) {
	memory, err := memoryTotal()
	if err != nil {
		return nil, err
	}
	return &model.MachineInfo{
		NumCores:       runtime.NumCPU(),
		MemoryCapacity: memory,
		MachineID:      firstLine("/etc/machine-id"),
		BootID:         firstLine("/proc/sys/kernel/random/boot_id"),
	}, nil
}

// VersionInfo returns the kernel version and the distribution of this machine.
func (machine) VersionInfo() (*model.VersionInfo, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return nil, fmt.Errorf("reading the kernel version: %w", err)
	}
	return &model.VersionInfo{
		KernelVersion:      unix.ByteSliceToString(u.Release[:]),
		ContainerOsVersion: osImage(),
	}, nil
}

// ContainerInfoV2 returns one container, which stands for the machine and has
// only a time. The kubelet uses this time as the timestamp of its statistics.
func (machine) ContainerInfoV2(string, model.RequestOptions) (map[string]model.ContainerInfo, error) {
	return map[string]model.ContainerInfo{"/": {Stats: []*model.ContainerStats{{Timestamp: time.Now()}}}}, nil
}

// GetRequestedContainersInfo returns no containers, because the runtime
// provides their statistics.
func (machine) GetRequestedContainersInfo(string, model.RequestOptions) (map[string]*model.ContainerInfo, error) {
	return map[string]*model.ContainerInfo{}, nil
}

// RootFsInfo describes the file system of the kubelet's folder.
func (m machine) RootFsInfo() (model.FsInfo, error) { return m.GetDirFsInfo(m.root) }

// ImagesFsInfo returns the same as RootFsInfo, since there are no images.
func (m machine) ImagesFsInfo(context.Context) (model.FsInfo, error) { return m.RootFsInfo() }

// ContainerFsInfo returns the same as RootFsInfo, since containers write to
// that file system.
func (m machine) ContainerFsInfo(context.Context) (model.FsInfo, error) { return m.RootFsInfo() }

// GetDirFsInfo describes the file system of a folder.
func (machine) GetDirFsInfo(path string) (model.FsInfo, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return model.FsInfo{}, fmt.Errorf("reading the size of the file system: %w", err)
	}
	size := uint64(s.Bsize)
	return model.FsInfo{
		Timestamp:  time.Now(),
		Device:     fmt.Sprintf("%x:%x", uint32(s.Fsid.Val[0]), uint32(s.Fsid.Val[1])),
		Mountpoint: path,
		Capacity:   s.Blocks * size,
		Available:  s.Bavail * size,
		Usage:      (s.Blocks - s.Bfree) * size,
		Inodes:     &s.Files,
		InodesFree: &s.Ffree,
	}, nil
}

func memoryTotal() (uint64, error) {
	file, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("reading the memory size of this machine: %w", err)
	}
	for line := range bytes.Lines(file) {
		if fields := bytes.Fields(line); len(fields) == 3 && string(fields[0]) == "MemTotal:" {
			kb, err := strconv.ParseUint(string(fields[1]), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("reading the memory size of this machine: /proc/meminfo has no MemTotal")
}

// firstLine returns the first line of a file, or "" if the file cannot be read, since nothing
// depends on the file's content.
func firstLine(path string) string {
	file, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(file), "\n")
	return line
}

// osImage returns the name of the distribution.
func osImage() string {
	file, err := os.Open("/etc/os-release")
	if err != nil {
		return "Linux"
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"'`)
		}
	}
	return "Linux"
}
