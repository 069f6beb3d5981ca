package scaffold

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// recordPath is the file with the templates from which a project was made. It is compressed,
// so that a search in the project does not find everything twice.
const recordPath = "hack/koboshi-templates.tar.gz"

// recordFormat is the folder of the archive that contains everything. A format that this
// version cannot read would have another folder.
const recordFormat = "v1/"

// versionPath is the file in the archive that holds the version of koboshi that wrote the archive.
const versionPath = "version"

// maxRecord limits the size of the archive when it is unpacked. It is about a hundred times
// the size of the templates.
const maxRecord = 16 << 20

// A record holds the templates of a project, and the version of koboshi that they belong to.
type record struct {
	templates Templates
	version   string
}

// ownVersion returns the version of this program, such as v0.3.0 or (devel).
func ownVersion() string {
	build, _ := debug.ReadBuildInfo()
	if build == nil {
		return ""
	}
	return build.Main.Version
}

// newer reports whether a version of koboshi is known to be newer than another one.
func newer(version, than string) bool {
	return semver.IsValid(version) && semver.IsValid(than) && semver.Compare(version, than) > 0
}

// recordOf reads the record of the project in a folder. It is nil if there is none.
func recordOf(dir string) (*record, error) {
	data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(recordPath)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r, err := unpack(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", recordPath, err)
	}
	return r, nil
}

// record adds the change that replaces the record of a project.
func (p *Plan) record(r record) error {
	data, err := r.pack()
	if err != nil {
		return err
	}
	c := Change{Action: ActionUpdate, Path: recordPath, New: data}
	c.Old, err = os.ReadFile(filepath.Join(p.Dir, filepath.FromSlash(recordPath)))
	if errors.Is(err, fs.ErrNotExist) {
		c.Action, err = ActionCreate, nil
	}
	p.Changes = append(p.Changes, c)
	return err
}

// pack returns the archive. The same record is always the same archive.
func (r record) pack() ([]byte, error) {
	var out bytes.Buffer
	compressor, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressor)
	add := func(name string, content []byte) error {
		header := &tar.Header{Name: recordFormat + name, Mode: 0o644, Size: int64(len(content))}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	err = add(versionPath, []byte(r.version+"\n"))
	// Files with the same name are alike in all layers, so they compress best side by side.
	names := r.templates.paths()
	slices.SortStableFunc(names, func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
	for _, name := range names {
		err = errors.Join(err, add(name, r.templates[name]))
	}
	err = errors.Join(err, archive.Close(), compressor.Close())
	return out.Bytes(), err
}

// unpack reads an archive.
func unpack(data []byte) (*record, error) {
	damaged := func(err error) error {
		return fmt.Errorf("the file is damaged (%w); restore it with git", err)
	}
	decompressor, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, damaged(err)
	}
	unpacked, err := io.ReadAll(io.LimitReader(decompressor, maxRecord+1))
	if err == nil && len(unpacked) > maxRecord {
		err = errors.New("it is too large")
	}
	if err != nil {
		return nil, damaged(err)
	}
	r := &record{templates: Templates{}}
	archive := tar.NewReader(bytes.NewReader(unpacked))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && header.Typeflag == tar.TypeReg {
			err = r.add(header.Name, archive)
		}
		if err != nil {
			return nil, damaged(err)
		}
	}
	if len(r.templates) == 0 {
		return nil, errors.New("this version of koboshi cannot read the file; install the version that has written it")
	}
	return r, nil
}

// add adds one file of an archive. The archive comes with the project, so its paths must not be
// trusted.
func (r *record) add(name string, content io.Reader) error {
	name, known := strings.CutPrefix(name, recordFormat)
	if !known {
		return nil
	}
	hidden := func(element string) bool { return strings.EqualFold(element, ".git") }
	if !fs.ValidPath(name) || strings.ContainsAny(name, `\:`) || slices.ContainsFunc(strings.Split(name, "/"), hidden) {
		return fmt.Errorf("it contains the path %q", name)
	}
	data, err := io.ReadAll(content)
	if name == versionPath {
		r.version = strings.TrimSpace(string(data))
	} else {
		r.templates[name] = data
	}
	return err
}
