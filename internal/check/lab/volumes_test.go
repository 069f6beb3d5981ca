package lab

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/koboshi-dev/koboshi/internal/check/process/view"
	"github.com/koboshi-dev/koboshi/internal/check/subject"
)

func TestVolumesAreMountedAtTheirPathsUnlessTheyHideSomething(t *testing.T) {
	content := map[string][]byte{"a": []byte("x")}
	l := &Lab{config: Config{Dir: "/data/lab", Subject: subject.Subject{
		Command: []string{"/opt/python", "/srv/app/main.py"}, Dir: "/srv/app",
		Files: []subject.Mount{
			{Path: "/etc/no-such-folder/", Files: content},
			{Path: "/no-such-folder"},
			{Path: "/tmp"},                  // exists on this machine
			{Path: "/data", Files: content}, // has the lab's folder
			{Path: "/srv", Files: content},  // has the program
			{Path: "/run/secrets/kubernetes.io/serviceaccount", Files: content},
		},
	}}}
	want := []view.Mount{
		{Source: "/data/lab/files-1/etc/no-such-folder", Target: "/etc/no-such-folder"},
		{Source: "/data/lab/files-1/no-such-folder", Target: "/no-such-folder", Writable: true},
	}
	if diff := cmp.Diff(want, l.volumeMounts(1)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTheCertificateIsWhereThePodHasIt(t *testing.T) {
	l := &Lab{config: Config{Dir: t.TempDir(), Subject: subject.Subject{
		Command: []string{"/opt/manager"}, Webhook: subject.Webhook{Port: 9443, CertDir: "$(CERTS)/deep", Mounts: []string{"/no-such-folder/certs/", "/opt"}},
	}}}
	if err := l.writeVolumes(); err != nil {
		t.Fatal(err)
	}
	want := []view.Mount{{Source: l.path("certs/deep"), Target: "/no-such-folder/certs"}}
	if diff := cmp.Diff(want, l.volumeMounts(0)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !exists(want[0].Source) {
		t.Error("the folder of the certificate is not there when the view is made")
	}
}
