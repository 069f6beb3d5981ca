package chart

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"time"
)

// Archive returns the chart as helm package writes it, but with one time for all files, so that the
// same chart gives the same bytes.
func (c *Chart) Archive() ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	files := tar.NewWriter(compressed)
	for _, path := range c.Paths() {
		header := &tar.Header{
			Name: c.Name + "/" + path, Mode: 0o644, Size: int64(len(c.Files[path])),
			ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg,
		}
		if err := files.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := files.Write(c.Files[path]); err != nil {
			return nil, err
		}
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
