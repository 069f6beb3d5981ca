package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"sigs.k8s.io/controller-tools/pkg/genall"
	"sigs.k8s.io/controller-tools/pkg/loader"
)

// store keeps the generated files in memory until all of them are known.
type store struct {
	files  map[string]*output // by absolute path
	stdout bytes.Buffer
	// inputs lists the files that generators have read, besides Go files.
	inputs map[string]bool
}

// output is a generated file.
type output struct {
	data []byte
	was  []byte // the content of the file on disk
	new  bool   // the file does not exist on disk
}

func (o *output) changed() bool { return o.new || !bytes.Equal(o.data, o.was) }

func newStore() *store { return &store{files: map[string]*output{}, inputs: map[string]bool{}} }

// create returns a writer for the file. As with os.Create, a second file with the same path
// replaces the first.
func (s *store) create(path string) io.WriteCloser {
	o := &output{}
	s.files[path] = o
	return o
}

func (o *output) Write(p []byte) (int, error) {
	o.data = append(o.data, p...)
	return len(p), nil
}

func (*output) Close() error { return nil }

// outputRule is an output rule of controller-gen whose files go to a store.
type outputRule struct {
	store *store
	dir   string // the folder in which controller-gen runs
	rule  genall.OutputRule
}

// Open implements genall.OutputRule.
func (o outputRule) Open(pkg *loader.Package, name string) (io.WriteCloser, error) {
	switch rule := o.rule.(type) {
	case genall.OutputToDirectory:
		return o.store.create(o.path(string(rule), name)), nil
	case genall.OutputArtifacts:
		return o.openArtifact(rule, pkg, name)
	}
	switch o.rule {
	case genall.OutputToNothing:
		return &output{}, nil
	case genall.OutputToStdout:
		return stdout{&o.store.stdout}, nil
	}
	return nil, fmt.Errorf("koboshi does not support the output rule %T", o.rule)
}

func (o outputRule) openArtifact(rule genall.OutputArtifacts, pkg *loader.Package, name string) (io.WriteCloser, error) {
	switch {
	case pkg == nil:
		return o.store.create(o.path(string(rule.Config), name)), nil
	case rule.Code != "":
		return o.store.create(o.path(string(rule.Code), name)), nil
	case len(pkg.CompiledGoFiles) == 0:
		return nil, errors.New("the package has no Go files")
	}
	return o.store.create(filepath.Join(filepath.Dir(pkg.CompiledGoFiles[0]), name)), nil
}

func (o outputRule) path(folder, name string) string {
	return inDir(o.dir, filepath.Join(folder, name))
}

// inDir returns the path as seen from a folder.
func inDir(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

type stdout struct{ *bytes.Buffer }

func (stdout) Close() error { return nil }

// inputRule reads files as controller-gen would see them after its earlier calls.
type inputRule struct {
	store *store
	dir   string
}

// OpenForRead implements genall.InputRule.
func (i inputRule) OpenForRead(path string) (io.ReadCloser, error) {
	path = inDir(i.dir, path)
	if o, ok := i.store.files[path]; ok {
		return io.NopCloser(bytes.NewReader(o.data)), nil
	}
	i.store.inputs[path] = true
	return os.Open(path)
}

// compare reads the files that exist on disk.
func (s *store) compare() error {
	for path, o := range s.files {
		data, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			o.new = true
		case err != nil:
			return err
		}
		o.was = data
	}
	return nil
}

// write writes the files that differ from those on disk. It first writes all of them under
// temporary names, so that a full disk or a missing permission changes nothing.
func (s *store) write() (err error) {
	renames := map[string]string{}
	defer func() {
		for temporary := range renames {
			_ = os.Remove(temporary) // fails if it has been renamed
		}
	}()
	for _, path := range sortedKeys(s.files) {
		if !s.files[path].changed() {
			continue
		}
		target, temporary, err := writeTemporary(path, s.files[path])
		if temporary != "" {
			renames[temporary] = target
		}
		if err != nil {
			return fmt.Errorf("writing %s: %w; nothing was changed", path, err)
		}
	}
	for temporary, target := range renames {
		if err := os.Rename(temporary, target); err != nil {
			return err
		}
	}
	return nil
}

// writeTemporary writes a file next to its target, and returns both paths.
func writeTemporary(path string, o *output) (target, temporary string, err error) {
	target = path
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		target = resolved // as with os.Create, a symbolic link stays
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o777); err != nil {
		return "", "", err
	}
	temporary = filepath.Join(filepath.Dir(target), fmt.Sprintf(".%s.koboshi-%d", filepath.Base(target), os.Getpid()))
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", "", err
	}
	mode := fs.FileMode(0o666) // the user's umask applies
	info, statErr := os.Stat(target)
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", "", err
	}
	_, err = file.Write(o.data)
	if statErr == nil {
		err = errors.Join(err, file.Chmod(info.Mode().Perm()))
	}
	return target, temporary, errors.Join(err, file.Close())
}

// versionAnnotation matches the line of a CRD that names the version of controller-gen.
var versionAnnotation = regexp.MustCompile(`(?m)^    controller-gen\.kubebuilder\.io/version: .*$`)

// setVersion replaces the running program's version, which controller-tools takes for the version
// of controller-gen, with the version of controller-tools.
func setVersion(data []byte) []byte {
	end := bytes.Index(data, []byte("\nspec:\n"))
	if end < 0 {
		return data
	}
	head := versionAnnotation.ReplaceAll(data[:end], []byte("    controller-gen.kubebuilder.io/version: "+ToolsVersion))
	return append(head[:len(head):len(head)], data[end:]...)
}
