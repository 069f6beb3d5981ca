package cri

import (
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestHiddenPathsAreEmptyUnlessTheyAreVolumes(t *testing.T) {
	p := newPlane(t)
	folder := p.volume("credentials", "key", "canary-secret")
	file := filepath.Join(p.volume("tokens", "token", "canary-secret"), "token")
	p.config.HidePaths = []string{folder, file, filepath.Join(folder, "no-such-file")}
	out, _ := p.pod().run(containerConfig("cat", file, ";", "cat", filepath.Join(folder, "key")))
	if strings.Contains(out, "canary-secret") || !strings.Contains(out, "no such file") {
		t.Errorf("the program reads %q", out)
	}
	out, _ = p.pod().run(withMounts(containerConfig("cat", filepath.Join(folder, "key")), &runtimeapi.Mount{ContainerPath: folder, HostPath: folder}))
	if out != "canary-secret" {
		t.Errorf("from a volume the program reads %q", out)
	}
	known, hosts := filepath.Join(folder, "hosts"), filepath.Join(p.volume("known", "hosts", "listed"), "hosts")
	out, _ = p.pod().run(withMounts(containerConfig("cat", known, ";", "cat", filepath.Join(folder, "key")), &runtimeapi.Mount{ContainerPath: known, HostPath: hosts}))
	if !strings.Contains(out, "listed") || strings.Contains(out, "canary-secret") {
		t.Errorf("beside a volume in the folder, the program reads %q", out)
	}
}
