package koboshi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/koboshi-dev/koboshi/internal/kubeversion"
)

const module = "github.com/koboshi-dev/koboshi"

// A goFile describes a Go file in any module of the repository.
type goFile struct {
	path    string // from the root, with slashes
	pkg     string // the name in its package clause
	doc     string // the package comment
	imports []string
	lines   int

	generated bool
}

func (f goFile) dir() string { return path.Dir(f.path) }

func (f goFile) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// under reports whether the file is in one of the folders or their subfolders.
func (f goFile) under(dirs ...string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool { return strings.HasPrefix(f.path, dir+"/") })
}

// uses reports whether the file imports the package or one of its subpackages.
func (f goFile) uses(pkg string) bool {
	return slices.ContainsFunc(f.imports, func(i string) bool { return i == pkg || strings.HasPrefix(i, pkg+"/") })
}

func TestEveryPackageHasExactlyOnePackageComment(t *testing.T) {
	byDir := map[string][]goFile{}
	for _, f := range goFiles(t) {
		// No tool shows the comment of an external test package.
		if !strings.HasSuffix(f.pkg, "_test") && !f.generated {
			byDir[f.dir()] = append(byDir[f.dir()], f)
		}
	}
	for dir, files := range byDir {
		// Only a package that consists of tests may have its comment in a test file.
		if code := slices.DeleteFunc(slices.Clone(files), goFile.test); len(code) > 0 {
			files = code
		}
		var documented []string
		for _, f := range files {
			if f.doc == "" {
				continue
			}
			documented = append(documented, path.Base(f.path))
			if opening := opening(f); !strings.HasPrefix(f.doc, opening) {
				t.Errorf("%s: the package comment begins %q, not %q; a comment meant for something else needs an empty line before the package clause",
					f.path, firstLine(f.doc), opening)
			}
		}
		switch len(documented) {
		case 0:
			t.Errorf("%s: no file has a package comment; without one, only the code shows the purpose of the package", dir)
		case 1:
		default:
			slices.Sort(documented)
			t.Errorf("%s: %s each have a package comment; go doc would join the comments", dir, strings.Join(documented, " and "))
		}
	}
}

// opening returns the words with which f's package comment must begin by Go's convention.
func opening(f goFile) string {
	if f.pkg == "main" {
		return "Command "
	}
	return "Package " + f.pkg + " "
}

// An importRule limits the folders that may import a package.
type importRule struct {
	name string
	// pkg is the package to which the rule applies, with all its subpackages.
	pkg string
	// in names the folders that must follow the rule; empty means all folders.
	in []string
	// except names the folders that may import pkg nevertheless. Each of these folders must
	// import pkg, or its exemption is stale.
	except []string
	// tests means that test files may import pkg.
	tests bool
	why   string
}

// decisions lists the packages that decide which faults are tried and what their results
// mean.
var decisions = []string{
	"internal/check/evidence", "internal/check/exposure", "internal/check/fault", "internal/check/invariant", "internal/check/judge", "internal/check/plan",
	"internal/check/report", "internal/check/rest", "internal/check/scenario", "internal/check/state",
	"internal/check/suite",
}

const whyDecisions = "the package only turns data into data, so that every decision can be tested without a cluster"

const whyInspect = "the inspector only reads a trace, so that it answers the same questions about a file and about a running controller"

var importRules = []importRule{
	{
		name: "kubernetes", pkg: "k8s.io/kubernetes",
		except: []string{"internal/controlplane/apiserver", "internal/controlplane/controllers", "internal/controlplane/kubelet"},
		why:    "upstream does not support k8s.io/kubernetes as a library, so a new release may break only three packages, one for each part of upstream",
	},
	{
		name: "kwok", pkg: "sigs.k8s.io/kwok",
		except: []string{"internal/controlplane/nodes"},
		why:    "only one package may know how nodes are simulated",
	},
	{
		name: "etcd server", pkg: "go.etcd.io/etcd/server",
		except: []string{"internal/controlplane/storage"},
		why:    "everything else is a client of the store and must also work with the user's own etcd",
	},
	{
		name: "black box", pkg: module + "/internal",
		in:  []string{"conformance", "demo"},
		why: "it judges the built binary as a user sees it, so it must not know how the binary is made",
	},
	{
		name: "operators", pkg: module + "/internal",
		in:  []string{"operators"},
		why: "the operators are users of Koboshi, so they may import only what every user can import",
	},
	{
		name: "library below command line", pkg: module + "/internal/cli",
		in: []string{
			"internal/apiproxy", "internal/check", "internal/controlplane", "internal/envtest", "internal/project", "internal/trace",
		},
		why: "the command line is a client of the libraries; a library that imports it cannot be embedded or tested without it",
	},
	{
		name: "decisions without a plane: controlplane", pkg: module + "/internal/controlplane", in: decisions, why: whyDecisions,
	},
	{
		name: "decisions without a plane: apiproxy", pkg: module + "/internal/apiproxy", in: decisions, why: whyDecisions,
	},
	{
		name: "decisions without a plane: lab", pkg: module + "/internal/check/lab", in: decisions, why: whyDecisions,
	},
	{
		name: "inspecting without a plane: controlplane", pkg: module + "/internal/controlplane", in: []string{"internal/inspect"}, tests: true, why: whyInspect,
	},
	{
		name: "inspecting without a plane: apiproxy", pkg: module + "/internal/apiproxy", in: []string{"internal/inspect"}, tests: true, why: whyInspect,
		except: []string{"internal/inspect/record"},
	},
	{
		name: "manifests without a plane", pkg: module + "/internal/controlplane", in: []string{"internal/manifest"}, tests: true,
		why: "generating must work without Kubernetes; compat gets a client configuration, and the command line starts the plane",
	},
	{
		name: "plane below check", pkg: module + "/internal/check",
		in:  []string{"internal/controlplane", "internal/apiproxy", "internal/trace", "internal/envtest"},
		why: "the checker is only one of several users of the plane and of the proxy, so these must not depend on it",
	},
}

func TestDependenciesStayWhereTheyBelong(t *testing.T) {
	files := goFiles(t)
	for _, rule := range importRules {
		t.Run(rule.name, func(t *testing.T) {
			used := map[string]bool{}
			for _, f := range files {
				if !f.uses(rule.pkg) || rule.tests && f.test() || len(rule.in) > 0 && !f.under(rule.in...) {
					continue
				}
				if f.under(rule.except...) {
					used[f.dir()] = used[f.dir()] || !f.test()
					continue
				}
				t.Errorf("%s imports %s: %s", f.path, rule.pkg, rule.why)
			}
			for _, dir := range rule.except {
				if !used[dir] {
					t.Errorf("%s is exempt but does not import %s; remove the exemption", dir, rule.pkg)
				}
			}
		})
	}
}

// goMod is the part of the output of `go mod edit -json` that is checked.
type goMod struct {
	Require []struct{ Path, Version string }
	Replace []json.RawMessage
	Exclude []json.RawMessage
}

func readGoMod(t *testing.T) goMod {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json", "go.mod").Output()
	if err != nil {
		t.Fatalf("go mod edit -json go.mod: %v", err)
	}
	var m goMod
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestGoInstallCanBuildTheModule(t *testing.T) {
	m := readGoMod(t)
	if len(m.Replace)+len(m.Exclude) > 0 {
		t.Errorf("go.mod replaces %s and excludes %s; with either, `go install %s/cmd/koboshi@latest` is refused",
			m.Replace, m.Exclude, module)
	}
}

func TestAllOfKubernetesIsOfOneRelease(t *testing.T) {
	const kubernetes = "k8s.io/kubernetes"
	versions := map[string]string{}
	for _, r := range readGoMod(t).Require {
		versions[r.Path] = r.Version
	}
	if got, want := "v"+kubeversion.Version, versions[kubernetes]; got != want {
		t.Errorf("kubeversion.Version is %s, but go.mod requires %s, so /version would report the wrong version", got, want)
	}
	staging := strings.Replace(versions[kubernetes], "v1.", "v0.", 1)
	minor := regexp.MustCompile(`^v0\.\d+\.\d+$`)
	found, other := 0, map[string][]string{}
	for name, version := range versions {
		// klog, utils and kube-openapi have their own release versions.
		if !strings.HasPrefix(name, "k8s.io/") || name == kubernetes || !minor.MatchString(version) {
			continue
		}
		found++
		if version != staging {
			other[version] = append(other[version], name)
		}
	}
	for version, names := range other {
		slices.Sort(names)
		t.Errorf("go.mod requires %s of %s, but also %s %s; upstream tests only parts of the same release together, so require %s",
			version, strings.Join(names, ", "), kubernetes, versions[kubernetes], staging)
	}
	if found < 20 {
		t.Errorf("go.mod requires only %d modules of Kubernetes' staging area; without replace directives, it must list every module that is needed", found)
	}
}

func TestNoPackageIsNamedAfterNothing(t *testing.T) {
	empty := []string{"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}
	reported := map[string]bool{}
	for _, f := range goFiles(t) {
		for _, name := range []string{strings.TrimSuffix(f.pkg, "_test"), path.Base(f.dir())} {
			if slices.Contains(empty, name) && !reported[f.dir()] {
				reported[f.dir()] = true
				t.Errorf("%s: the name %q does not show the purpose of the package; choose a name that does", f.dir(), name)
			}
		}
	}
}

func TestNoFileIsTooLongToRead(t *testing.T) {
	const limit = 800
	for _, f := range goFiles(t) {
		if f.lines > limit && !f.generated {
			t.Errorf("%s has %d lines, more than %d; split it, because it probably has more than one subject", f.path, f.lines, limit)
		}
	}
}

func TestNoFileNamesAMachine(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached").Output()
	if err != nil {
		t.Skipf("not a checkout: %v", err)
	}
	// The folders /root and /work exist only on the machine of the author.
	machine := regexp.MustCompile(`(^|[^\w.-])/(root|work)/`)
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && bytes.IndexByte(data, 0) >= 0 {
			continue // deleted but not yet committed, or not a text file
		}
		if err != nil {
			t.Fatal(err)
		}
		for number, line := range bytes.Split(data, []byte("\n")) {
			if found := machine.Find(line); found != nil {
				t.Errorf("%s:%d: %q is a folder that exists on only one machine", name, number+1, found)
			}
		}
	}
}

func TestLicenceIsApache2(t *testing.T) {
	data, err := os.ReadFile("LICENSE")
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatal("there is no LICENSE")
	}
	if err != nil {
		t.Fatal(err)
	}
	head := strings.Join(strings.Fields(string(data[:min(len(data), 200)])), " ")
	if want := "Apache License Version 2.0, January 2004"; !strings.HasPrefix(head, want) {
		t.Errorf("LICENSE begins %q, want %q", head, want)
	}
}

// goFiles reads every Go file of every module in the repository.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	files, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

var parsed = sync.OnceValues(func() ([]goFile, error) {
	files := map[string]goFile{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && ignored(entry.Name()):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".go":
			return nil
		}
		f, err := parse(name)
		files[f.path] = f
		return err
	})
	return slices.SortedFunc(maps.Values(files), func(a, b goFile) int { return strings.Compare(a.path, b.path) }), err
})

// ignored reports whether the go command skips the folder, or whether it holds build
// results.
func ignored(dir string) bool {
	return strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_") ||
		slices.Contains([]string{"testdata", "vendor", "bin", "dist"}, dir)
}

func parse(name string) (goFile, error) {
	src, err := os.ReadFile(name)
	if err != nil {
		return goFile{}, err
	}
	syntax, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return goFile{}, err
	}
	f := goFile{
		path:      filepath.ToSlash(name),
		pkg:       syntax.Name.Name,
		doc:       syntax.Doc.Text(),
		lines:     bytes.Count(src, []byte("\n")),
		generated: ast.IsGenerated(syntax),
	}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return goFile{}, err
		}
		f.imports = append(f.imports, imported)
	}
	return f, nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
