package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/klauspost/compress/gzip"
)

// File is a file or an empty folder of an image.
type File struct {
	// Path is absolute in the image. A path that ends with a slash is a folder.
	Path string
	// Source is the file on this machine that has the content; empty means Content.
	Source  string
	Content []byte
	// Mode has the permissions, and the sticky bit.
	Mode fs.FileMode

	sum string // of the content, in hexadecimal; set by keyOf
}

// layer is a compressed tar archive in a cache folder.
type layer struct {
	path   string
	digest v1.Hash
	diffID v1.Hash
	size   int64
}

var _ v1.Layer = (*layer)(nil)

func (l *layer) Digest() (v1.Hash, error)            { return l.digest, nil }
func (l *layer) DiffID() (v1.Hash, error)            { return l.diffID, nil }
func (l *layer) Size() (int64, error)                { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error) { return types.OCILayer, nil }
func (l *layer) Compressed() (io.ReadCloser, error)  { return os.Open(l.path) }
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	f, err := os.Open(l.path)
	if err != nil {
		return nil, err
	}
	content, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{content, f}, nil
}

// compressed is what the cache knows of a layer: the digests of a layer are expensive, because
// computing them needs the compressed content.
type compressed struct {
	Digest, DiffID v1.Hash
	Size           int64
}

// newLayer makes a layer of files, which all belong to root and have the given time. It is made
// only once for the same files: later calls find it in the cache folder.
func newLayer(cache string, files []File, at time.Time) (*layer, error) {
	removeOld(cache)
	files = slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	key, err := keyOf(files, at)
	if err != nil {
		return nil, err
	}
	base := filepath.Join(cache, "layer-"+key)
	if l := cached(base); l != nil {
		return l, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	out, err := os.CreateTemp(cache, "layer-*.tmp")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(out.Name()) }()
	l, err := write(out, files, at)
	if err = errors.Join(err, out.Close()); err != nil {
		return nil, err
	}
	if err := os.Rename(out.Name(), base+".tar.gz"); err != nil {
		return nil, err
	}
	l.path = base + ".tar.gz"
	data, err := json.Marshal(compressed{l.digest, l.diffID, l.size})
	if err != nil {
		return nil, err
	}
	return l, os.WriteFile(base+".json", data, 0o644)
}

// cached returns the layer whose files in the cache folder begin with base, or nil.
func cached(base string) *layer {
	data, err := os.ReadFile(base + ".json")
	var known compressed
	if err != nil || json.Unmarshal(data, &known) != nil {
		return nil
	}
	info, err := os.Stat(base + ".tar.gz")
	if err != nil || info.Size() != known.Size {
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(base+".tar.gz", now, now) // it is still used; see removeOld
	return &layer{base + ".tar.gz", known.Digest, known.DiffID, known.Size}
}

// unused is the time after which a layer is removed from the cache folder.
const unused = 7 * 24 * time.Hour

// removeOld removes layers that were not used for a long time. Each change of a program makes a new one.
func removeOld(cache string) {
	archives, _ := filepath.Glob(filepath.Join(cache, "layer-*.tar.gz")) // the pattern is valid
	for _, archive := range archives {
		if info, err := os.Stat(archive); err == nil && time.Since(info.ModTime()) > unused {
			_ = os.Remove(archive) // another call may have removed it
			_ = os.Remove(strings.TrimSuffix(archive, ".tar.gz") + ".json")
		}
	}
}

// format is part of the key of a layer, and changes with the way in which layers are written.
const format = "1"

// keyOf returns a hash of everything on which a layer depends, and notes the hash of each file.
func keyOf(files []File, at time.Time) (string, error) {
	sum := sha256.New()
	_, _ = fmt.Fprintln(sum, format, at.Unix()) // never fails
	for i := range files {
		f := &files[i]
		content, _, err := f.open()
		if err != nil {
			return "", err
		}
		own := sha256.New()
		_, err = io.Copy(own, content)
		if err = errors.Join(err, content.Close()); err != nil {
			return "", err
		}
		f.sum = hex.EncodeToString(own.Sum(nil))
		_, _ = fmt.Fprintf(sum, "%q %o %s\n", f.Path, f.Mode, f.sum)
	}
	return hex.EncodeToString(sum.Sum(nil))[:32], nil
}

func (f File) open() (io.ReadCloser, int64, error) {
	if f.Source == "" {
		return io.NopCloser(bytes.NewReader(f.Content)), int64(len(f.Content)), nil
	}
	file, err := os.Open(f.Source)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, info.Size(), nil
}

// write writes a compressed archive, and computes both digests on the way.
func write(w io.Writer, files []File, at time.Time) (*layer, error) {
	outer, inner := newCounter(), newCounter()
	zipped := gzip.NewWriter(io.MultiWriter(w, outer))
	if err := writeTar(io.MultiWriter(zipped, inner), files, at); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return &layer{digest: outer.sum(), diffID: inner.sum(), size: outer.n}, nil
}

// writeTar writes an archive that depends only on the files and the time.
func writeTar(w io.Writer, files []File, at time.Time) error {
	archive := tar.NewWriter(w)
	for _, folder := range parents(files) {
		header := &tar.Header{Typeflag: tar.TypeDir, Name: folder + "/", Mode: 0o755, ModTime: at, Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
	}
	for _, f := range files {
		if err := add(archive, f, at); err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
	}
	return archive.Close()
}

func add(archive *tar.Writer, f File, at time.Time) error {
	header := &tar.Header{Name: strings.TrimPrefix(f.Path, "/"), Mode: int64(f.Mode.Perm()), ModTime: at, Format: tar.FormatPAX}
	if f.Mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	if strings.HasSuffix(f.Path, "/") {
		header.Typeflag = tar.TypeDir
		return archive.WriteHeader(header)
	}
	content, size, err := f.open()
	if err != nil {
		return err
	}
	header.Typeflag, header.Size = tar.TypeReg, size
	sum := sha256.New()
	if err = archive.WriteHeader(header); err == nil {
		_, err = io.Copy(io.MultiWriter(archive, sum), content)
	}
	// Otherwise, the layer would be found under the hash of another file from now on.
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != f.sum {
		err = errors.New("the file has changed while it was read; another call of koboshi ship may have built it again, so run this one again")
	}
	return errors.Join(err, content.Close())
}

// parents returns the folders in which the files are, without a leading slash and in an order in
// which each folder follows its parent.
func parents(files []File) []string {
	var all []string
	for _, f := range files {
		for folder := path.Dir(strings.Trim(f.Path, "/")); folder != "."; folder = path.Dir(folder) {
			all = append(all, folder)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// counter computes the digest and the length of what is written to it.
type counter struct {
	hash.Hash
	n int64
}

func newCounter() *counter { return &counter{Hash: sha256.New()} }

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return c.Hash.Write(b)
}

func (c *counter) sum() v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(c.Sum(nil))}
}
