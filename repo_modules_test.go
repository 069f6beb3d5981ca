package koboshi_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A versionRule lets one of our modules link a different version of a module than our
// other modules do.
type versionRule struct {
	module string // "*" stands for every module
	in     string // the folder of one of our modules, or a suffix that several folders share
	why    string
}

// Each exemption means that everything that imports the module is compiled again, so a
// module is exempt only if no large part of Kubernetes imports it.
var versionRules = []versionRule{
	{"github.com/Masterminds/semver/v3", ".", "Helm requires it, for koboshi check; otherwise only Sprig imports it"},
	{"github.com/Masterminds/semver/v3", "/test/install", "Helm requires it"},
	{"github.com/Masterminds/semver/v3", "/olm/validation", "Helm requires it, for the project that the bundle is made from"},
	{"dario.cat/mergo", "/olm/validation", "the operator framework's library requires it; only Sprig imports it"},
	{"github.com/fsnotify/fsnotify", "/test/install", "Prometheus requires it"},
	{"gomodules.xyz/jsonpatch/v2", "/test/install", "cert-manager requires it"},
	{"google.golang.org/genproto/googleapis/rpc", "/test/install", "Prometheus requires it"},
	{"sigs.k8s.io/gateway-api", "/test/install", "cert-manager's types name it"},
	{"*", "operators/storagebucket/test/s3server", "it does not link Kubernetes, and an S3 server of a different release is a better test of the client"},
}

func (r versionRule) covers(module, in string) bool {
	return strings.HasSuffix(in, r.in) && (r.module == "*" || r.module == module)
}

// If a module is linked in two versions, everything that imports it is compiled twice.
// When two versions of kube-openapi differed by a month, all of client-go was compiled
// twice.
func TestModulesLinkTheSameVersions(t *testing.T) {
	if testing.Short() {
		t.Skip("it asks the go command for the packages of each module")
	}
	versions := map[string]map[string][]string{} // module → version → ours
	for _, dir := range ourModules(t) {
		for _, linked := range linkedBy(t, dir) {
			module, version, _ := strings.Cut(linked, " ")
			if versions[module] == nil {
				versions[module] = map[string][]string{}
			}
			versions[module][version] = append(versions[module][version], dir)
		}
	}
	used := map[versionRule]bool{}
	for _, module := range slices.Sorted(maps.Keys(versions)) {
		var strict []string
		for version, dirs := range versions[module] {
			for _, dir := range dirs {
				exempt := slices.IndexFunc(versionRules, func(r versionRule) bool { return r.covers(module, dir) })
				if exempt < 0 {
					strict = append(strict, fmt.Sprintf("%s in %s", version, dir))
				} else if len(versions[module]) > 1 {
					used[versionRules[exempt]] = true
				}
			}
		}
		slices.Sort(strict)
		distinct := map[string]bool{}
		for _, s := range strict {
			version, _, _ := strings.Cut(s, " ")
			distinct[version] = true
		}
		if len(distinct) > 1 {
			t.Errorf("%s is linked as %s; everything that imports it is compiled once for each version", module, strings.Join(strict, ", "))
		}
	}
	for _, rule := range versionRules {
		if !used[rule] {
			t.Errorf("%s is exempt for %s but links the same version as the other modules; remove the exemption", rule.in, rule.module)
		}
	}
}

// ourModules lists the folders with a go.mod whose packages are part of a build
// or a test. It skips linters and generators, because they are built only once.
func ourModules(t *testing.T) []string {
	t.Helper()
	var dirs []string
	for _, name := range tracked(t) {
		dir, file := path.Split(name)
		if file != "go.mod" || strings.Contains(dir, "testdata/") || strings.HasSuffix(dir, "tools/") {
			continue
		}
		dirs = append(dirs, path.Clean(dir))
	}
	if len(dirs) < 5 {
		t.Fatalf("found only the modules %q", dirs)
	}
	return dirs
}

// linkedBy returns the modules whose packages are linked into a program or a test
// of the module in dir, each with its version.
func linkedBy(t *testing.T, dir string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-test", "-f",
		"{{with .Module}}{{if .Version}}{{.Path}} {{.Version}}{{end}}{{end}}", "./...")
	cmd.Dir = filepath.FromSlash(dir)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list in %s: %v\n%s", dir, err, stderr.Bytes())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	slices.Sort(lines)
	lines = slices.Compact(lines)
	return slices.DeleteFunc(lines, func(line string) bool {
		return line == "" || strings.HasPrefix(line, module+"/")
	})
}

// tracked returns the files that git tracks, as paths with slashes.
func tracked(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached").Output()
	if err != nil {
		t.Skipf("not a checkout: %v", err)
	}
	return strings.Split(strings.Trim(string(out), "\x00"), "\x00")
}

// There are two sets of build flags: one without cgo, and one with the race detector. A
// third set would compile the standard library and Kubernetes once more. Both sets include
// -trimpath, which each Makefile exports, so that clones in different folders share the
// compiler's cache.
func TestNothingIsBuiltWithAThirdSetOfFlags(t *testing.T) {
	command := regexp.MustCompile(`\bgo (build|test|vet|run) `)
	flags := regexp.MustCompile(` -(gcflags|asmflags|tags|trimpath|msan|asan|cover|covermode|buildmode)\b`)
	exported := regexp.MustCompile(`(?m)^export GOFLAGS := .* -trimpath\)$`)
	found := 0
	for _, name := range tracked(t) {
		if path.Base(name) != "Makefile" || strings.Contains(name, "testdata/") || strings.Contains(name, "/_layers/") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !exported.Match(data) {
			t.Errorf("%s does not export GOFLAGS with -trimpath", name)
		}
		for number, line := range strings.Split(string(data), "\n") {
			line, _, _ = strings.Cut(line, "##")
			if !strings.HasPrefix(line, "\t") || !command.MatchString(line) {
				continue
			}
			found++
			// In an operator's folder, the user's environment decides whether cgo is used,
			// except for the commands of `make test` and `make verify`.
			static := strings.Contains(line, "$(STATIC)") || strings.Contains(line, "CGO_ENABLED=0")
			if own := strings.HasPrefix(name, "operators/"); !static && !strings.Contains(line, " -race") && !own {
				t.Errorf("%s:%d: %s\nneither $(STATIC) nor -race", name, number+1, strings.TrimSpace(line))
			}
			if bad := flags.FindString(line); bad != "" {
				t.Errorf("%s:%d:%s compiles everything once more", name, number+1, bad)
			}
		}
	}
	if found < 20 {
		t.Errorf("found only %d calls of the go command in Makefiles", found)
	}
}

// The map in ARCHITECTURE.md must name every package, and none that was removed.
func TestTheMapNamesEveryPackage(t *testing.T) {
	data, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(data), -1) {
		rows[m[1]] = true
	}
	dirs := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.under("internal", "cmd") && !f.test() {
			dirs[f.dir()] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if !rows[dir] {
			t.Errorf("ARCHITECTURE.md has no row for %s", dir)
		}
	}
	for row := range rows {
		if _, err := os.Stat(filepath.FromSlash(row)); err != nil {
			t.Errorf("ARCHITECTURE.md has a row for %s: %v", row, err)
		}
	}
}
