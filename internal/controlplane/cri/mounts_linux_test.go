package cri

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func withMounts(config *runtimeapi.ContainerConfig, mounts ...*runtimeapi.Mount) *runtimeapi.ContainerConfig {
	config.Mounts = mounts
	return config
}

func TestVolumesAreAtTheirMountPathsAndTheDiskIsUntouched(t *testing.T) {
	p := newPlane(t)
	volume := p.volume("content", "file", "from the volume\n")
	existing := p.volume("existing", "hidden", "below the volume\n")
	pod := p.pod()
	for _, path := range []string{
		existing,                                 // exists
		filepath.Join(p.volumes, "new/deep/dir"), // below a folder that exists
		"/no/such/folder",                        // below /
		"/etc/koboshi-test/conf",                 // below a folder of the system
		"/var/run/koboshi-test",                  // where /var/run is a symlink
	} {
		out, _ := pod.run(withMounts(containerConfig("cat", path+"/file", ";", "cat", "/etc/passwd"),
			&runtimeapi.Mount{ContainerPath: path, HostPath: volume}))
		if !strings.HasPrefix(out, "from the volume\n") || !strings.Contains(out, "root:") {
			t.Errorf("%s: %s", path, out)
		}
	}
	for _, path := range []string{"/no", "/etc/koboshi-test", "/run/koboshi-test", filepath.Join(p.volumes, "new")} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is on the disk", path)
		}
	}
	if _, err := os.Stat(filepath.Join(existing, "hidden")); err != nil {
		t.Error(err)
	}
}

func TestFilesAreMountedAsFiles(t *testing.T) {
	p := newPlane(t)
	dir := p.volume("messages", "message", "")
	file := filepath.Join(dir, "message")
	out, _ := p.pod().run(withMounts(containerConfig(
		"write", "/dev/termination-log", "the reason", ";", "cat", "/dev/termination-log", ";", "write", "/dev/null", "x", ";", "cat", "/etc/hosts"),
		&runtimeapi.Mount{ContainerPath: "/dev/termination-log", HostPath: file},
		&runtimeapi.Mount{ContainerPath: "/etc/hosts", HostPath: file, Readonly: true}))
	text, err := os.ReadFile(file)
	if err != nil || string(text) != "the reason" || out != "the reasonthe reason" {
		t.Errorf("file %q, output %q, error %v", text, out, err)
	}
}

func TestVolumesInVolumes(t *testing.T) {
	p := newPlane(t)
	outer, inner := p.volume("outer", "a", "outer\n"), p.volume("inner", "b", "inner\n")
	out, _ := p.pod().run(withMounts(containerConfig("cat", "/data/a", "/data/sub/dir/b"),
		// The kubelet does not sort mounts.
		&runtimeapi.Mount{ContainerPath: "/data/sub/dir", HostPath: inner},
		&runtimeapi.Mount{ContainerPath: "/data", HostPath: outer}))
	if out != "outer\ninner\n" {
		t.Error(out)
	}
}

func TestVolumeMayHideTheProgramItself(t *testing.T) {
	p := newPlane(t)
	top := "/" + strings.Split(p.config.Programs[0].Path, "/")[1]
	out, status := p.pod().run(withMounts(containerConfig("cat", top+"/file"),
		&runtimeapi.Mount{ContainerPath: top, HostPath: p.volume("content", "file", "hiding\n")}))
	if out != "hiding\n" {
		t.Errorf("%q, %s", out, status.GetMessage())
	}
}

func TestReadOnlyIsHonoured(t *testing.T) {
	p := newPlane(t)
	locked, open := p.volume("locked", "a", ""), p.volume("open", "b", "")
	pod := p.pod()
	mounts := []*runtimeapi.Mount{
		{ContainerPath: "/locked", HostPath: locked, Readonly: true},
		{ContainerPath: "/open", HostPath: open},
	}
	for _, test := range []struct {
		path     string
		root     bool
		writable bool
	}{
		{"/locked/new", false, false}, {"/open/new", false, true}, {"/new", false, true}, {"/tmp/koboshi-ro-test", true, false},
		{"/locked/new", true, false}, {"/open/new", true, true}, {"/new", true, false}, {"/dev/null", true, true},
		{filepath.Join(p.volumes, "new"), true, false},
	} {
		config := withMounts(containerConfig("write", test.path, "x"), mounts...)
		config.Linux.SecurityContext.ReadonlyRootfs = test.root
		out, status := pod.run(config)
		if (status.GetExitCode() == 0) != test.writable || !test.writable && !strings.Contains(out, "read-only file system") {
			t.Errorf("writing %s with readOnlyRootFilesystem %t: %s", test.path, test.root, out)
		}
	}
}

func TestLaterFilesOfAVolumeAppear(t *testing.T) {
	p := newPlane(t)
	dir := p.volume("content", "file", "before\n")
	b := p.pod().start(withMounts(containerConfig("block"), &runtimeapi.Mount{ContainerPath: "/content", HostPath: dir, Readonly: true}))
	p.volume("content", "later", "after\n")
	out, _, err := p.ExecSync(t.Context(), b.id, b.command("cat", "/content/later"), limit)
	if err != nil || string(out) != "after\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestMountPathsThatCannotBeAreRefusedInOneLine(t *testing.T) {
	p := newPlane(t)
	pod := p.pod()
	dir := p.volume("content", "file", "")
	for path, want := range map[string]string{
		"/etc/passwd":         "/etc/passwd is a file on this machine, but the volume is a folder",
		"/etc/passwd/content": "/etc/passwd is a file on this machine",
		"relative":            "is not absolute",
	} {
		id, err := pod.CreateContainer(t.Context(), pod.id, withMounts(containerConfig("block"),
			&runtimeapi.Mount{ContainerPath: path, HostPath: dir}), pod.config)
		if err != nil {
			t.Fatal(err)
		}
		if err := pod.StartContainer(t.Context(), id); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
