package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// cacheFormat changes when the content of a fingerprint changes.
const cacheFormat = "1"

// A cache keeps a fingerprint of everything that affects the generated files, and of these files.
// If the fingerprint is the same as after the last run, nothing is generated. If anything goes
// wrong with the cache, everything is generated.
type cache struct {
	g    *generation
	path string // empty if nothing can be kept
}

// A record describes a run without problems.
type record struct {
	Sum string `json:"sum"`
	// Modules lists the folders of the modules whose packages can be edited.
	Modules []string `json:"modules"`
	// Files lists the other files that were read.
	Files []string `json:"files"`
	// Outputs lists the generated files.
	Outputs []string `json:"outputs"`
}

func (g *generation) newCache() *cache {
	c := &cache{g: g}
	if g.options.Cache == "" || !cacheable(os.Getenv("GOFLAGS")) {
		return c
	}
	sum := sha256.New()
	writeStrings(sum, cacheFormat, g.dir, fmt.Sprint(g.options.Lenient))
	writeStrings(sum, g.options.Args...)
	c.path = filepath.Join(g.options.Cache, hex.EncodeToString(sum.Sum(nil)[:16])+".json")
	return c
}

// cacheable reports whether flags of the go command name no further files.
func cacheable(flags string) bool {
	return !strings.Contains(flags, "-modfile") && !strings.Contains(flags, "-overlay") && !strings.Contains(flags, "-toolexec")
}

// lookup returns the generated files if nothing has changed since the last run.
func (c *cache) lookup() (outputs []string, ok bool) {
	if c.path == "" {
		return nil, false
	}
	data, err := os.ReadFile(c.path)
	if err != nil {
		return nil, false
	}
	var r record
	if json.Unmarshal(data, &r) != nil || r.Sum == "" {
		return nil, false
	}
	sum, err := c.fingerprint(r)
	return r.Outputs, err == nil && sum == r.Sum
}

// save records a run that reported no problems.
func (c *cache) save(loads []*load, s *store) {
	if c.path == "" || s.stdout.Len() > 0 || !c.complete() {
		return
	}
	r := record{Outputs: sortedKeys(s.files), Files: sortedKeys(s.inputs), Modules: []string{c.g.dir}}
	for _, l := range loads {
		for _, pkg := range everyPackage(l.roots) {
			if dir := moduleDir(pkg.Package); dir != "" {
				r.Modules = append(r.Modules, dir)
			}
			// go.sum already covers the files of other modules, except those in a vendor folder.
			if pkg.Syntax != nil && strings.Contains(filepath.ToSlash(pkg.Dir), "/vendor/") {
				r.Files = append(r.Files, pkg.CompiledGoFiles...)
			}
		}
		r.Modules = append(r.Modules, l.dir)
	}
	for _, list := range []*[]string{&r.Modules, &r.Files} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	sum, err := c.fingerprint(r)
	if err != nil {
		return
	}
	r.Sum = sum
	data, err := json.Marshal(r)
	if err != nil || os.MkdirAll(filepath.Dir(c.path), 0o755) != nil {
		return
	}
	temporary := fmt.Sprintf("%s.%d", c.path, os.Getpid())
	if os.WriteFile(temporary, data, 0o600) == nil && os.Rename(temporary, c.path) != nil {
		_ = os.Remove(temporary)
	}
}

// complete reports whether all inputs of the calls are known. The generator schemapatch reads
// a whole folder, and calls with an environment of their own may use other files.
func (c *cache) complete() bool {
	return !slices.ContainsFunc(c.g.calls, func(call Call) bool {
		return len(call.Env) > 0 || slices.ContainsFunc(call.Args, func(arg string) bool { return strings.HasPrefix(arg, "schemapatch") })
	})
}

// moduleDir returns the folder of the package's module if the module can be edited.
func moduleDir(pkg *packages.Package) string {
	if !isOwn(pkg) {
		return ""
	}
	if pkg.Module.Replace != nil && pkg.Module.Replace.Dir != "" {
		return pkg.Module.Replace.Dir
	}
	return pkg.Module.Dir
}

// fingerprint returns the hash of the inputs and outputs.
func (c *cache) fingerprint(r record) (string, error) {
	sum := sha256.New()
	writeStrings(sum, cacheFormat, c.g.dir, fmt.Sprint(c.g.options.Lenient))
	calls, err := json.Marshal(c.g.calls)
	if err != nil {
		return "", err
	}
	writeStrings(sum, string(calls))
	for _, add := range []func(hash.Hash) error{addProgram, addToolchain, c.addWorkspace} {
		if err := add(sum); err != nil {
			return "", err
		}
	}
	for _, dir := range r.Modules {
		if err := addModule(sum, dir); err != nil {
			return "", err
		}
	}
	// koboshi generate changes this file even if there is no marker, so the file may exist without
	// being an output.
	if err := addIfExists(sum, inDir(c.g.dir, filepath.FromSlash(policyFile))); err != nil {
		return "", err
	}
	for _, path := range slices.Concat(r.Files, r.Outputs) {
		if err := addFile(sum, path); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// writeStrings adds texts to a hash so that the hash also depends on where each text ends.
func writeStrings(w io.Writer, texts ...string) {
	for _, text := range texts {
		_, _ = fmt.Fprintf(w, "%d:%s;", len(text), text) // a hash takes everything
	}
}

// addFile adds the path and the content of a file.
func addFile(sum hash.Hash, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	writeStrings(sum, path)
	_, _ = fmt.Fprintf(sum, "%d:", len(data))
	_, _ = sum.Write(data)
	return nil
}

// addIfExists does the same as addFile, but accepts a missing file.
func addIfExists(sum hash.Hash, path string) error {
	err := addFile(sum, path)
	if os.IsNotExist(err) {
		writeStrings(sum, path, "missing")
		return nil
	}
	return err
}

// identityLength is the number of bytes at the beginning of a program that contain its build
// ID, which Go derives from the content.
const identityLength = 32 << 10

// addProgram adds the identity of this program.
func addProgram(sum hash.Hash) error {
	path, err := os.Executable()
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	writeStrings(sum, fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
	_, err = io.CopyN(sum, file, identityLength)
	return err
}

// addToolchain adds the go command and its settings.
func addToolchain(sum hash.Hash) error {
	program, err := exec.LookPath("go")
	if err != nil {
		return err
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return err
	}
	info, err := os.Stat(program)
	if err != nil {
		return err
	}
	writeStrings(sum, program, fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
	if err := addIfExists(sum, filepath.Join(filepath.Dir(filepath.Dir(program)), "VERSION")); err != nil {
		return err
	}
	for _, entry := range slices.Sorted(slices.Values(os.Environ())) {
		if strings.HasPrefix(entry, "GO") || strings.HasPrefix(entry, "CGO_") {
			writeStrings(sum, entry)
		}
	}
	return addGoEnv(sum)
}

// addGoEnv adds the file that go env -w writes.
func addGoEnv(sum hash.Hash) error {
	path := os.Getenv("GOENV")
	if path == "" {
		config, err := os.UserConfigDir()
		if err != nil {
			return err
		}
		path = filepath.Join(config, "go", "env")
	}
	if data, err := os.ReadFile(path); err == nil && !cacheable(string(data)) {
		return fmt.Errorf("%s sets flags that name further files", path)
	}
	return addIfExists(sum, path)
}

// addWorkspace adds the go.work files that are in effect, or that would be in effect if they
// existed.
func (c *cache) addWorkspace(sum hash.Hash) error {
	if path := os.Getenv("GOWORK"); path != "" && path != "off" {
		return addFile(sum, path)
	}
	for dir := c.g.dir; ; dir = filepath.Dir(dir) {
		for _, name := range []string{"go.work", "go.work.sum"} {
			if err := addIfExists(sum, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// addModule adds the Go files of a module and the files that select its dependencies. The
// modules below it are added only if they are used.
func addModule(sum hash.Hash, dir string) error {
	if err := addIfExists(sum, filepath.Join(dir, "vendor", "modules.txt")); err != nil {
		return err
	}
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && path != dir && separate(dir, path, name) {
			return fs.SkipDir
		}
		if !entry.IsDir() && (strings.HasSuffix(name, ".go") || name == "go.mod" || name == "go.sum") {
			return addFile(sum, path)
		}
		return nil
	})
}

// separate reports whether a folder below a module contains none of its packages.
func separate(module, path, name string) bool {
	if name == ".git" || name == "vendor" && filepath.Dir(path) == module {
		return true
	}
	_, err := os.Lstat(filepath.Join(path, "go.mod"))
	return err == nil
}
