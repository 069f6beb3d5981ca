package project_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/check/subject"
	"github.com/koboshi-dev/koboshi/internal/project"
)

// projecting returns texts to replace in the installation, so that the projected volume
// /info has more sources, and two arguments name files in it.
func projecting() []string {
	return []string{
		"          sources:\n", `          sources:
          - serviceAccountToken: {path: token, expirationSeconds: 3607}
          - configMap: {name: kube-root-ca.crt, items: [{key: ca.crt, path: account/ca.crt}]}
          - secret: {name: pilot-cert}
          - clusterTrustBundle: {name: trust, path: trust.pem}
`,
		"/serving/tls.crt", "/info/tls.crt",
		"/scratch/absent", "/info/token",
	}
}

func TestEachSourceOfAProjectedVolumeThatExistsIsThere(t *testing.T) {
	p, told, err := fromManifests(t, installation(t, projecting()...), project.Options{Env: []string{"FLEET_NAME=north"}})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := subject.WriteFiles(root, p.Subject.Files); err != nil {
		t.Fatal(err)
	}
	if err := subject.WriteAccount(root, p.Subject.Files, "a token", []byte("an authority")); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"token": "a token", "account/ca.crt": "an authority", "user": "ahab", "annotations": `tide="high"`,
	} {
		if data, err := os.ReadFile(filepath.Join(root, "info", file)); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", file, data, err)
		}
	}
	command := strings.Join(p.Subject.Command, " ")
	for _, want := range []string{"--tls-file=$(CERTS)/tls.crt", "--absent=$(KOBOSHI_ROOT)/info/token"} {
		if !strings.Contains(command, want) {
			t.Errorf("%s is not in %s", want, command)
		}
	}
	if !slices.ContainsFunc(*told, func(line string) bool {
		return strings.Contains(line, "a source of the volume info of Deployment harbour/pilot")
	}) {
		t.Errorf("the missing source is not told:\n%s", strings.Join(*told, "\n"))
	}
}

func TestAProjectedVolumeOfCertificatesOnlyIsTheFolderOfTheLab(t *testing.T) {
	p, _, err := fromManifests(t, installation(t, "secret: {secretName: serving}", "projected: {sources: [{secret: {name: serving-cert}}]}"), project.Options{Env: []string{"FLEET_NAME=north"}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(p.Subject.Command, "--tls-file=$(CERTS)/tls.crt") {
		t.Errorf("the command is %q", p.Subject.Command)
	}
	if slices.ContainsFunc(p.Subject.Files, func(m subject.Mount) bool { return m.Path == "/serving" }) {
		t.Error("the volume hides the certificates")
	}
}

func TestTheKeysOfAStubComeFromAProjectedVolume(t *testing.T) {
	replace := []string{"kind: Secret\nmetadata: {name: keys,", "kind: Secret\nmetadata: {name: others,", "secret: {secretName: keys}", "secret: {secretName: others}"}
	p, _, err := fromManifests(t, installation(t, replace...), project.Options{Env: []string{"FLEET_NAME=x"}, StubSecrets: []string{"harbour/keys"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range p.Subject.Files {
		if m.Path == "/info" && string(m.Files["user"]) != "koboshi" {
			t.Errorf("the projected volume has %q", m.Files)
		}
	}
}
