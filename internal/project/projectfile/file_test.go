package projectfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// full has every key of version 3, in the order in which kubebuilder writes them, and keys
// that this package does not know.
const full = `# written by a person
cliVersion: 4.15.0
domain: example.org
future: {of: kubebuilder}
layout:
- go.kubebuilder.io/v4
- example.org/own/v1 # ours
multigroup: true
namespaced: true
plugins:
  deploy-image.go.kubebuilder.io/v1-alpha:
    resources:
    - group: sea
      kind: Boat
      options:
        image: boat:1
  helm.kubebuilder.io/v2-alpha: {}
projectName: harbour
repo: example.org/harbour
resources:
# the first kind
- api:
    crdVersion: v1
    namespaced: true
    ssa: true
    unknown: 1
  controllers:
  - name: boat
  - name: boat-backup
  domain: example.org
  group: sea
  kind: Boat
  path: example.org/harbour/api/sea/v1
  plural: fleet
  version: v1
  webhooks:
    conversion: true
    defaulting: true
    defaultingPath: /d
    spoke:
    - v2
    validation: true
    validationPath: /v
    webhookVersion: v1
- controller: true
  domain: io
  external: true
  group: cert-manager
  kind: Issuer
  module: github.com/cert-manager/cert-manager@v1.20.2
  path: github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1
  version: v1
- core: true
  group: apps
  kind: Deployment
  path: k8s.io/api/apps/v1
  version: v1
version: "3"
`

func parse(t *testing.T, text string) *File {
	t.Helper()
	f, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func wantText(t *testing.T, f *File, want string) {
	t.Helper()
	got, err := f.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFileThatIsNotEditedStaysAsItIs(t *testing.T) {
	for _, text := range []string{full, "", "# nothing\n", "version:   '3'\nlayout: [ go.kubebuilder.io/v4 ]\n"} {
		wantText(t, parse(t, text), text)
	}
}

func TestAllKeysOfVersion3AreRead(t *testing.T) {
	want := &File{
		CLIVersion: "4.15.0", Domain: "example.org", Layout: plugins{LayoutV4, "example.org/own/v1"},
		MultiGroup: true, Namespaced: true, ProjectName: "harbour", Repo: "example.org/harbour", Version: "3",
		Resources: []Resource{
			{
				API:         &API{CRDVersion: "v1", Namespaced: true, SSA: true},
				Controllers: []Controller{{Name: "boat"}, {Name: "boat-backup"}},
				Domain:      "example.org", Group: "sea", Kind: "Boat", Path: "example.org/harbour/api/sea/v1", Plural: "fleet", Version: "v1",
				Webhooks: &Webhooks{
					Conversion: true, Defaulting: true, DefaultingPath: "/d", Spoke: []string{"v2"},
					Validation: true, ValidationPath: "/v", WebhookVersion: "v1",
				},
			},
			{
				Controller: true, Domain: "io", External: true, Group: "cert-manager", Kind: "Issuer", Version: "v1",
				Module: "github.com/cert-manager/cert-manager@v1.20.2", Path: "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1",
			},
			{Core: true, Group: "apps", Kind: "Deployment", Path: "k8s.io/api/apps/v1", Version: "v1"},
		},
	}
	if diff := cmp.Diff(want, parse(t, full), cmpopts.IgnoreUnexported(File{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnEditChangesOnlyItsFields(t *testing.T) {
	for name, edit := range map[string]struct {
		do       func(*File)
		old, new string
	}{
		"a scalar":     {func(f *File) { f.Domain = "example.com" }, "domain: example.org\nfuture", "domain: example.com\nfuture"},
		"a new key":    {func(f *File) { f.Resources[2].Controller = true }, "- core: true", "- controller: true\n  core: true"},
		"no more key":  {func(f *File) { f.MultiGroup = false }, "multigroup: true\n", ""},
		"in a mapping": {func(f *File) { f.Resources[0].API.Namespaced = false }, "    namespaced: true\n", ""},
		"a list":       {func(f *File) { f.Resources[0].Webhooks.Spoke = []string{"v2", "v3"} }, "    - v2\n", "    - v2\n    - v3\n"},
		"a mapping": {
			func(f *File) { f.Resources[1].Webhooks = &Webhooks{Validation: true, WebhookVersion: "v1"} },
			"certmanager/v1\n  version: v1\n", "certmanager/v1\n  version: v1\n  webhooks:\n    validation: true\n    webhookVersion: v1\n",
		},
		"no more mapping": {func(f *File) { f.Resources[0].API = nil }, "- api:\n    crdVersion: v1\n    namespaced: true\n    ssa: true\n    unknown: 1\n  controllers", "- controllers"},
		"a new resource": {
			func(f *File) {
				f.Set(Resource{Controller: true, Core: true, Group: "core", Kind: "Pod", Version: "v1"})
			},
			"version: \"3\"", "- controller: true\n  core: true\n  group: core\n  kind: Pod\n  version: v1\nversion: \"3\"",
		},
		"the first key": {func(f *File) { f.CLIVersion = "" }, "cliVersion: 4.15.0\n", ""},
		"a list with a comment": {
			func(f *File) { f.Layout = append(plugins{"first/v1"}, f.Layout...) },
			"layout:\n", "layout:\n- first/v1\n",
		},
		"a controller": {
			func(f *File) { f.Resources[0].Controllers = f.Resources[0].Controllers[1:] }, "  - name: boat\n", "",
		},
		"a resource again": {func(f *File) { f.Set(f.Resources[1]) }, "", ""},
		"no more resource": {
			func(f *File) { f.Delete(Resource{Core: true, Group: "apps", Kind: "Deployment", Version: "v1"}) },
			"- core: true\n  group: apps\n  kind: Deployment\n  path: k8s.io/api/apps/v1\n  version: v1\n", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := parse(t, full)
			edit.do(f)
			// Flow style and the places of comments are not changed either.
			wantText(t, f, strings.Replace(full, edit.old, edit.new, 1))
		})
	}
}

func TestTheHeaderStaysAtTheTop(t *testing.T) {
	f := parse(t, "# header\ndomain: example.org\nversion: \"3\"\n")
	f.CLIVersion = "4.15.0"
	wantText(t, f, "# header\ncliVersion: 4.15.0\ndomain: example.org\nversion: \"3\"\n")
	f = parse(t, "# header\ndomain: example.org\nversion: \"3\"\n")
	f.Domain = ""
	wantText(t, f, "# header\nversion: \"3\"\n")
}

func TestAnotherDocumentIsNotLost(t *testing.T) {
	for _, first := range []string{"domain: a\n", "null\n"} {
		f := parse(t, first+"---\ndomain: b\n")
		f.Domain = "c"
		if _, err := f.Bytes(); err == nil || !strings.Contains(err.Error(), "more than one YAML document") {
			t.Errorf("%v", err)
		}
	}
}

func TestANewFileIsWhatKubebuilderWouldWrite(t *testing.T) {
	f := New("harbour", "example.org", "example.org/harbour")
	f.Set(Resource{
		API: &API{CRDVersion: "v1", Namespaced: true}, Controller: true,
		Domain: "example.org", Group: "sea", Kind: "Boat", Path: "example.org/harbour/api/v1", Version: "v1",
	})
	wantText(t, f, `# This file records what koboshi or kubebuilder has scaffolded.
domain: example.org
layout:
- go.kubebuilder.io/v4
projectName: harbour
repo: example.org/harbour
resources:
- api:
    crdVersion: v1
    namespaced: true
  controller: true
  domain: example.org
  group: sea
  kind: Boat
  path: example.org/harbour/api/v1
  version: v1
version: "3"
`)
}

func TestAFileWithAnAliasIsReadAndNotEdited(t *testing.T) {
	f := parse(t, "domain: &d example.org\nprojectName: *d\nversion: \"3\"\n")
	if f.ProjectName != "example.org" {
		t.Errorf("%+v", f)
	}
	f.Repo = "example.org/a"
	if _, err := f.Bytes(); err == nil || !strings.Contains(err.Error(), "line 2 has a YAML alias") {
		t.Errorf("%v", err)
	}
}

func TestAFolderWithoutTheFileHasAnEmptyOne(t *testing.T) {
	f, err := Read(t.TempDir())
	if err != nil || f.ProjectName != "" || len(f.Resources) > 0 {
		t.Errorf("%+v, %v", f, err)
	}
	if err := f.Check(); err == nil || !strings.Contains(err.Error(), "there is no version") {
		t.Errorf("Check: %v", err)
	}
}

func TestABrokenFileIsNamedWithItsLine(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, Name), []byte("domain: a\nmultigroup: perhaps\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "PROJECT: ") || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
}

func TestOldVersionsAreReadAndNotEdited(t *testing.T) {
	f := parse(t, "version: \"2\"\nrepo: a.b/c\nresources:\n- group: sea\n  kind: Boat\n  version: v1\n")
	if f.Repo != "a.b/c" || f.Resources[0].Kind != "Boat" {
		t.Errorf("%+v", f)
	}
	if err := f.Check(); err == nil || !strings.Contains(err.Error(), `version "2"`) {
		t.Errorf("Check: %v", err)
	}
	f = parse(t, "version: \"3\"\nlayout: go.kubebuilder.io/v3\n")
	if err := f.Check(); err == nil || !strings.Contains(err.Error(), "go.kubebuilder.io/v3") {
		t.Errorf("Check: %v", err)
	}
	if err := parse(t, full).Check(); err != nil {
		t.Error(err)
	}
}

func TestNamesThatTheAPIServerRefusesAreRefused(t *testing.T) {
	boat := Resource{Group: "sea", Domain: "example.org", Version: "v1", Kind: "Boat"}
	for want, change := range map[string]func(*Resource){
		"":                          func(*Resource) {},
		"must not both be empty":    func(r *Resource) { r.Group, r.Domain = "", "" },
		`group "Sea.example.org"`:   func(r *Resource) { r.Group = "Sea" },
		"needs a group with a dom":  func(r *Resource) { r.Domain = "" },
		`version "1"`:               func(r *Resource) { r.Version = "1" },
		`version "v1.0"`:            func(r *Resource) { r.Version = "v1.0" },
		`kind ""`:                   func(r *Resource) { r.Kind = "" },
		"uppercase letter, as in B": func(r *Resource) { r.Kind = "boat" },
		"must not contain a dash":   func(r *Resource) { r.Kind = "Row-Boat" },
		`kind "Böat"`:               func(r *Resource) { r.Kind = "Böat" },
	} {
		r := boat
		change(&r)
		err := r.CheckNames()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%+v: %v, want %q", r, err, want)
		}
	}
	if err := (Resource{Group: "apps", Core: true, Version: "v1", Kind: "Deployment"}).CheckNames(); err != nil {
		t.Error(err)
	}
	pod := Resource{Group: "core", Core: true, Version: "v1", Kind: "Pod"}
	if err := pod.CheckNames(); err != nil || pod.QualifiedGroup() != "" {
		t.Errorf("%v, group %q", err, pod.QualifiedGroup())
	}
	if err := CheckDomain("Example.org"); err == nil || !strings.Contains(err.Error(), `domain "Example.org"`) {
		t.Errorf("%v", err)
	}
}

// FuzzEdit checks that each file that can be read can also be edited, and that the result
// contains the edited fields and all other fields that this package knows.
func FuzzEdit(f *testing.F) {
	f.Add(full)
	f.Add("version: \"2\"\nresources:\n- kind: A\n- kind: A\n")
	f.Add("resources: [{kind: A, group: b}, {}]\ndomain: &a b\nrepo: *a\n")
	f.Add("# nothing\n")
	f.Add("resources:\n-\n- kind: A\n- kind: B\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse([]byte(text))
		if err != nil {
			return
		}
		file.Domain = "fuzzed.example.org"
		file.Set(Resource{Group: "new", Domain: "fuzzed", Version: "v1", Kind: "Added"})
		data, err := file.Bytes()
		if err != nil && (strings.Contains(err.Error(), "alias") || strings.Contains(err.Error(), "more than one")) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(data)
		if err != nil {
			t.Fatalf("%v:\n%s", err, data)
		}
		if diff := cmp.Diff(file, again, cmpopts.IgnoreUnexported(File{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("(-edited +read again):\n%s\n%s", diff, data)
		}
	})
}

func TestThePluralIsRegularUnlessItIsGiven(t *testing.T) {
	for kind, want := range map[string]string{
		"MarkdownView": "markdownviews", "Policy": "policies", "Ingress": "ingresses", "Foo": "foos",
	} {
		if got := (Resource{Kind: kind}).PluralName(); got != want {
			t.Errorf("the plural of %s is %q, want %q", kind, got, want)
		}
	}
	if got := (Resource{Kind: "Boat", Plural: "fleet"}).PluralName(); got != "fleet" {
		t.Errorf("the plural is %q, want the one that was given", got)
	}
}
