package subject_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

func TestPathsInVolumesAreRelocated(t *testing.T) {
	mounts := []subject.Mount{{Path: "/etc/app/"}, {Path: "/etc/app/extra"}, {Path: "/key", Files: map[string][]byte{"": nil}}}
	before := []string{
		"/etc/app", "--config=/etc/app/a.yaml", "A=/etc/app/extra/x,/key:/etc/apple", "--keys=/keys", "file:/key", "/opt/etc/app", "see /key",
	}
	want := []string{
		"$(KOBOSHI_ROOT)/etc/app", "--config=$(KOBOSHI_ROOT)/etc/app/a.yaml", "A=$(KOBOSHI_ROOT)/etc/app/extra/x,$(KOBOSHI_ROOT)/key:/etc/apple",
		"--keys=/keys", "file:$(KOBOSHI_ROOT)/key", "/opt/etc/app", "see $(KOBOSHI_ROOT)/key",
	}
	if diff := cmp.Diff(want, subject.Relocate(before, mounts)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if before[0] != "/etc/app" {
		t.Errorf("the texts themselves were changed: %q", before)
	}
}

func TestFilesStayBelowTheirFolder(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	mounts := []subject.Mount{{Path: "/a/../../b", Files: map[string][]byte{"../../c": []byte("x")}}}
	if err := subject.WriteFiles(root, mounts); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(root, "b", "c")); err != nil || string(data) != "x" {
		t.Errorf("%q %v", data, err)
	}
}

func FuzzRelocate(f *testing.F) {
	f.Add("--a=/etc/x", "/etc")
	f.Add("$1/($", "/$(x)")
	f.Fuzz(func(t *testing.T, text, path string) {
		got := subject.Relocate([]string{text}, []subject.Mount{{Path: path}})[0]
		if strings.ReplaceAll(got, "$("+subject.Root+")", "") != strings.ReplaceAll(text, "$("+subject.Root+")", "") {
			t.Errorf("%q with the volume %q became %q", text, path, got)
		}
	})
}

func TestOnlyWhatTheControllerWroteIsRemovedFromItsVolumes(t *testing.T) {
	root := t.TempDir()
	mounts := []subject.Mount{{Path: "/data"}, {Path: "/data/deep/config", Files: map[string][]byte{"a": []byte("x")}}}
	if err := subject.WriteFiles(root, mounts); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"data/state/db", "data/lock"} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := subject.EmptyFiles(root, mounts); err != nil {
		t.Fatal(err)
	}
	var left []string
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		left = append(left, strings.TrimPrefix(path, root))
		return err
	})
	if diff := cmp.Diff([]string{"", "/data", "/data/deep", "/data/deep/config", "/data/deep/config/a"}, left); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}

func TestOnlyFilesThatStandForTheAccountAreReplaced(t *testing.T) {
	root := t.TempDir()
	mounts := []subject.Mount{{Path: "/account", Files: map[string][]byte{
		"token": []byte(subject.AccountToken), "ca.crt": []byte(subject.AccountCA), "note": []byte("not " + subject.AccountToken),
	}}}
	if err := subject.WriteFiles(root, mounts); err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"first", "second"} { // a new instance has a new token
		if err := subject.WriteAccount(root, mounts, token, []byte("authority")); err != nil {
			t.Fatal(err)
		}
		for file, want := range map[string]string{"token": token, "ca.crt": "authority", "note": "not " + subject.AccountToken} {
			if data, err := os.ReadFile(filepath.Join(root, "account", file)); err != nil || string(data) != want {
				t.Errorf("%s: %q, %v; want %q", file, data, err, want)
			}
		}
	}
}
