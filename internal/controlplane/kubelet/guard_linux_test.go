package kubelet

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNothingOutsideTheKubeletsFolderIsRemovedOrMoved(t *testing.T) {
	outside := t.TempDir()
	root := filepath.Join(outside, "kubelet")
	precious := filepath.Join(outside, "precious")
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(outside)
	g := guardedOS{root: root}
	for _, path := range []string{precious, "precious", "*", "", ".", outside, root + "/../precious", root} {
		for name, remove := range map[string]func() error{
			"Remove":    func() error { return g.Remove(path) },
			"RemoveAll": func() error { return g.RemoveAll(path) },
			"Rename":    func() error { return g.Rename(path, root+"/stolen") },
			"onto":      func() error { return g.Rename(root+"/mine", path) },
			"Create":    func() error { _, err := g.Create(path); return err },
		} {
			if remove() == nil {
				t.Errorf("%s of %q was not refused", name, path)
			}
		}
	}
	if _, err := os.Stat(precious); err != nil {
		t.Error(err)
	}
}

func TestTheKubeletsOwnFilesAreRemovedAndMoved(t *testing.T) {
	t.Parallel()
	g := guardedOS{root: t.TempDir()}
	logs := filepath.Join(g.root, "logs")
	if err := g.MkdirAll(logs, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := g.Create(filepath.Join(logs, "0.log"))
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if err := g.Rename(filepath.Join(logs, "0.log"), filepath.Join(logs, "0.log.old")); err != nil {
		t.Error(err)
	}
	if err := g.Remove(filepath.Join(logs, "0.log.old")); err != nil {
		t.Error(err)
	}
	if err := g.RemoveAll(logs); err != nil {
		t.Error(err)
	}
}

func TestLinksInVarLogAreNeitherMadeNorFoundNorAnError(t *testing.T) {
	t.Parallel()
	g := guardedOS{root: t.TempDir()}
	link := "/var/log/containers/web_default_web-0123.log"
	if err := g.MkdirAll("/var/log/containers", 0o755); err != nil {
		t.Error(err)
	}
	if err := g.Symlink(filepath.Join(g.root, "0.log"), link); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(link); err == nil {
		t.Error("the link was made")
	}
	if err := g.Remove(link); err != nil {
		t.Error(err)
	}
	if found, err := g.Glob("/var/log/containers/*.log"); len(found) > 0 || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
}
