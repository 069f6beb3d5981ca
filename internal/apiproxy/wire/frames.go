package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// prefixLen is the size in bytes of the length field before each protobuf frame.
const prefixLen = 4

// maxFrame is far larger than any object that a store accepts; a longer frame cannot be
// from a watch.
const maxFrame = 256 << 20

// Frames splits a watch into its events.
type Frames struct {
	r        io.Reader
	protobuf bool
	buf      []byte
	// searched is the number of bytes at the start of buf that were searched and
	// contain no end of a frame.
	searched int
}

// NewFrames returns a reader of the frames of the watch in r.
func NewFrames(r io.Reader, protobuf bool) *Frames { return &Frames{r: r, protobuf: protobuf} }

// Next returns the next frame with its prefix or line feed, so that all frames together
// are the stream byte for byte. The caller may keep the returned bytes. Bytes after the
// last complete frame are returned together with the error.
func (f *Frames) Next() ([]byte, error) {
	for {
		n, err := f.end()
		if err != nil {
			return f.take(len(f.buf)), err
		}
		if n > 0 {
			return f.take(n), nil
		}
		if err := f.read(); err != nil {
			return f.take(len(f.buf)), err
		}
	}
}

func (f *Frames) take(n int) []byte {
	if n == 0 {
		return nil
	}
	frame := bytes.Clone(f.buf[:n])
	f.buf = f.buf[:copy(f.buf, f.buf[n:])]
	f.searched = 0
	return frame
}

func (f *Frames) read() error {
	if len(f.buf) == cap(f.buf) {
		f.buf = append(make([]byte, 0, max(8<<10, 2*cap(f.buf))), f.buf...)
	}
	n, err := f.r.Read(f.buf[len(f.buf):cap(f.buf)])
	f.buf = f.buf[:len(f.buf)+n]
	if n > 0 {
		return nil // if there was an error, the next Read returns it again
	}
	return err
}

// end returns the length of the first frame, or 0 if it is not complete yet.
func (f *Frames) end() (int, error) {
	if len(f.buf) > maxFrame {
		return 0, fmt.Errorf("a watch event is longer than %d bytes", maxFrame)
	}
	if f.protobuf {
		if len(f.buf) < prefixLen {
			return 0, nil
		}
		n := prefixLen + int64(binary.BigEndian.Uint32(f.buf))
		if n > maxFrame {
			return 0, fmt.Errorf("a watch event is longer than %d bytes", maxFrame)
		}
		if int64(len(f.buf)) < n {
			return 0, nil
		}
		return int(n), nil
	}
	for {
		n := bytes.IndexByte(f.buf[f.searched:], '\n')
		if n < 0 {
			f.searched = len(f.buf)
			return 0, nil
		}
		f.searched += n + 1
		line := f.buf[:f.searched]
		// API servers write compact JSON without line feeds; only indented JSON contains
		// line feeds.
		if bytes.HasPrefix(line, []byte(`{"`)) || json.Valid(line) {
			return f.searched, nil
		}
	}
}
