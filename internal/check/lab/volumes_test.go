package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/process/view"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

func TestVolumesAreMountedAtTheirPathsUnlessTheyHideSomething(t *testing.T) {
	content := map[string][]byte{"a": []byte("x")}
	l := &Lab{config: Config{Dir: "/work/lab", Subject: subject.Subject{
		Command: []string{"/opt/python", "/srv/app/main.py"}, Dir: "/srv/app",
		Files: []subject.Mount{
			{Path: "/etc/no-such-folder/", Files: content},
			{Path: "/no-such-folder"},
			{Path: "/tmp"},                  // exists on this machine
			{Path: "/work", Files: content}, // has the lab's folder
			{Path: "/srv", Files: content},  // has the program
			{Path: "/run/secrets/kubernetes.io/serviceaccount", Files: content},
		},
	}}}
	want := []view.Mount{
		{Source: "/work/lab/files-1/etc/no-such-folder", Target: "/etc/no-such-folder"},
		{Source: "/work/lab/files-1/no-such-folder", Target: "/no-such-folder", Writable: true},
	}
	if diff := cmp.Diff(want, l.volumeMounts(1)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
