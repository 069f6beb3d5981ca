// Package releasetools pins GoReleaser, and checks .goreleaser.yaml.
package releasetools

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

// readRelease reads the file as GoReleaser does, which refuses fields that it does not know.
func readRelease(t *testing.T) config.Project {
	t.Helper()
	project, err := config.Load("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if project.Version != 2 || len(project.Builds) != 1 || len(project.Archives) != 1 || len(project.NFPMs) != 1 {
		t.Fatalf("version %d, %d builds, %d archives, %d packages", project.Version, len(project.Builds), len(project.Archives), len(project.NFPMs))
	}
	return project
}

// actions/setup and the template for GitLab download files by these names.
func TestAReleaseHasTheNamesThatTheActionsDownload(t *testing.T) {
	project := readRelease(t)
	archive := project.Archives[0]
	name, err := template.New("name").Option("missingkey=error").Parse(archive.NameTemplate)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := name.Execute(&b, map[string]string{"Version": "1.2.0", "Os": "linux", "Arch": "amd64"}); err != nil {
		t.Fatal(err)
	}
	for _, format := range archive.Formats {
		b.WriteString("." + format)
	}
	if got := b.String(); got != "koboshi_1.2.0_linux_amd64.tar.gz" || project.Checksum.NameTemplate != "checksums.txt" || project.Checksum.Algorithm != "sha256" {
		t.Errorf("the archive is %s, and its %s is in %s", got, project.Checksum.Algorithm, project.Checksum.NameTemplate)
	}
	for _, file := range []string{"../../actions/setup/install.sh", "../../actions/gitlab/koboshi.gitlab-ci.yml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), `koboshi_${`) || !strings.Contains(string(data), "checksums.txt") {
			t.Errorf("%s does not download these files", file)
		}
	}
}

func TestAReleaseIsForAllPlatforms(t *testing.T) {
	build := readRelease(t).Builds[0]
	if diff := cmp.Diff([]string{"linux", "darwin"}, build.Goos) + cmp.Diff([]string{"amd64", "arm64"}, build.Goarch); diff != "" {
		t.Errorf("the platforms (-want +got):\n%s", diff)
	}
}

// Every time that is not that of the commit would make the files of two builds differ.
func TestEveryFileOfAReleaseHasTheTimeOfTheCommit(t *testing.T) {
	project := readRelease(t)
	const date = "{{ .CommitDate }}"
	for _, file := range project.Archives[0].Files {
		if file.Info.MTime != date {
			t.Errorf("%s has the time %q", file.Source, file.Info.MTime)
		}
	}
	if got := project.Archives[0].BuildsInfo.MTime; got != date {
		t.Errorf("the program in an archive has the time %q", got)
	}
	if got := project.NFPMs[0].MTime; got != date {
		t.Errorf("packages have the time %q", got)
	}
	if got := project.Builds[0].ModTimestamp; got != "{{ .CommitTimestamp }}" {
		t.Errorf("programs have the time %q", got)
	}
}

func TestEveryFileOfAReleaseExists(t *testing.T) {
	project := readRelease(t)
	var sources []string
	for _, file := range project.Archives[0].Files {
		sources = append(sources, file.Source)
	}
	for _, content := range project.NFPMs[0].Contents {
		if content.Type != "symlink" {
			sources = append(sources, content.Source)
		}
	}
	made := 0
	for _, source := range sources {
		if source == "bin/man1/*.1" { // a hook makes them
			made++
			continue
		}
		if _, err := os.Stat(filepath.Join("..", "..", source)); err != nil {
			t.Error(err)
		}
	}
	if made != 2 || !slices.Contains(sources, "LICENSE") {
		t.Errorf("archives and packages do not have the licence and the manual pages: %q", sources)
	}
}
