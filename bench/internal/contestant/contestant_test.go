package contestant

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAContestantNeedsAllThreePrograms(t *testing.T) {
	dir := t.TempDir()
	c := Contestant{Name: Stock, Assets: dir}
	for _, name := range programs {
		err := c.Check()
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "-stock DIR") {
			t.Errorf("without %s, Check says %v; it must name the program and the flag", name, err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Check(); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(filepath.Join(dir, "etcd"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := c.Check(); err == nil {
		t.Error("an etcd that cannot be executed takes part")
	}
}

func TestABinaryThatCannotTellItsFolderIsReportedInItsOwnWords(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "koboshi")
	script := "#!/bin/sh\necho \"unknown command $1\" >&2\nexit 2\n"
	if err := os.WriteFile(binary, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	if dir, err := FromBinary(t.Context(), binary); err == nil || !strings.Contains(err.Error(), "unknown command envtest") {
		t.Errorf("got %q, %v", dir, err)
	}
}
