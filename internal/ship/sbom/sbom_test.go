package sbom_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/koboshi-dev/koboshi/internal/ship/sbom"
)

var digest = "sha256:" + strings.Repeat("0123456789abcdef", 4)

// built builds the program in testdata.
func built(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "program")
	if said, err := exec.Command("go", "build", "-o", program, "./testdata/program").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return program
}

// list lists the modules of an image with the program in testdata.
func list(t *testing.T) []byte {
	t.Helper()
	text, err := sbom.Make(sbom.Image{Name: "example.com/sea", Digest: digest}, []string{built(t)}, "koboshi-v1", time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestAllModulesOfAProgramAreListed(t *testing.T) {
	document, err := json.Read(bytes.NewReader(list(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	found := map[string]string{}
	for _, p := range document.Packages {
		for _, r := range p.PackageExternalReferences {
			found[p.PackageName] = r.Locator
		}
	}
	for module, want := range map[string]string{
		"golang.org/x/mod": `^pkg:golang/golang\.org/x/mod@v\d`, "stdlib": `^pkg:golang/stdlib@1\.\d`,
	} {
		if !regexp.MustCompile(want).MatchString(found[module]) {
			t.Errorf("%s has the package URL %q", module, found[module])
		}
	}
	if created := document.CreationInfo.Created; created != "1970-01-01T00:00:00Z" {
		t.Errorf("created at %s", created)
	}
}

func TestAProgramOutsideAnImageIsWhatItsDocumentDescribes(t *testing.T) {
	program := built(t)
	text, err := sbom.MakeForProgram(program, "koboshi-v1", time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	document, err := json.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		t.Error(err)
	}
	described, err := spdxlib.GetDescribedPackageIDs(document)
	if err != nil || len(described) != 1 {
		t.Fatalf("the document describes %v: %v", described, err)
	}
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	modules := 0
	for _, p := range document.Packages {
		if p.PackageSPDXIdentifier != described[0] {
			modules++
			continue
		}
		if want := fmt.Sprintf("%x", sha256.Sum256(data)); p.PackageName != "program" || len(p.PackageChecksums) != 1 || p.PackageChecksums[0].Value != want {
			t.Errorf("it describes %s with the checksums %v, want program with %s", p.PackageName, p.PackageChecksums, want)
		}
	}
	if modules < 3 {
		t.Errorf("it lists %d modules, want the standard library, the program's and golang.org/x/mod", modules)
	}
}

func TestTheSameProgramHasTheSameList(t *testing.T) {
	if !bytes.Equal(list(t), list(t)) {
		t.Error("two lists differ")
	}
}

func TestAFileThatIsNoGoProgramIsRefused(t *testing.T) {
	file := t.TempDir() + "/script"
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sbom.Make(sbom.Image{Name: "a", Digest: digest}, []string{file}, "koboshi", time.Time{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v", err)
	}
}
