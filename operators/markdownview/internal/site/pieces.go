package site

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"io"
	"slices"
)

// Every page shows the navigation of the complete book. With a thousand pages, the
// navigation takes a hundred kilobytes in each page. Only the mark of the current page
// differs from page to page. The body of a page is therefore a list of pieces, and all
// pages share the pieces of the navigation that have no marks, both uncompressed and
// compressed.

// piece is a part that several bodies share.
type piece struct {
	plain []byte
	// deflated holds the same bytes as complete, non-final deflate blocks. The blocks have
	// no references to earlier data, so they fit into any stream.
	deflated []byte
	sum      [sha256.Size]byte
}

// part is a part of a body: either its own bytes or a shared piece.
type part struct {
	own    []byte
	shared *piece
}

func (p part) bytes() []byte {
	if p.shared != nil {
		return p.shared.plain
	}
	return p.own
}

// Body holds the bytes of a response, in pieces that must not be changed.
type Body struct {
	pieces [][]byte
	size   int
}

// Size returns the number of bytes.
func (b Body) Size() int { return b.size }

// WriteTo writes the complete body.
func (b Body) WriteTo(w io.Writer) (int64, error) {
	var written int64
	for _, p := range b.pieces {
		n, err := w.Write(p)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

func (b *Body) add(p []byte) {
	if len(p) == 0 {
		return
	}
	b.size += len(p)
	if n := len(b.pieces); n > 0 {
		// Shared pieces that are adjacent in memory are written together.
		last := b.pieces[n-1]
		if cap(last) >= len(last)+len(p) && &last[:len(last)+1][len(last)] == &p[0] {
			b.pieces[n-1] = last[:len(last)+len(p)]
			return
		}
	}
	b.pieces = append(b.pieces, p)
}

// composer makes bodies. A composer is not safe for concurrent use.
type composer struct {
	flate *flate.Writer
	buf   bytes.Buffer
}

func newComposer() *composer {
	c := &composer{}
	// The only possible error is an invalid level.
	c.flate, _ = flate.NewWriter(&c.buf, flate.DefaultCompression)
	return c
}

// newPlainComposer returns a composer that does not compress.
func newPlainComposer() *composer { return &composer{} }

// share cuts a text at these offsets into shared pieces. The pieces stay adjacent in memory,
// both uncompressed and compressed.
func (c *composer) share(text []byte, cuts []int) []*piece {
	var pieces []*piece
	var deflated []byte
	var ends []int
	from := 0
	for _, cut := range cuts {
		plain := text[from:cut]
		deflated = append(deflated, c.deflate(false, plain)...)
		ends = append(ends, len(deflated))
		pieces = append(pieces, &piece{plain: plain, sum: sha256.Sum256(plain)})
		from = cut
	}
	from = 0
	for i, end := range ends {
		pieces[i].deflated, from = deflated[from:end], end
	}
	return pieces
}

// deflate compresses the parts into blocks that begin and end at a byte boundary.
// Writing to a buffer cannot fail.
func (c *composer) deflate(final bool, parts ...[]byte) []byte {
	c.buf.Reset()
	c.flate.Reset(&c.buf)
	for _, p := range parts {
		_, _ = c.flate.Write(p)
	}
	if final {
		_ = c.flate.Close()
	} else {
		_ = c.flate.Flush()
	}
	return bytes.Clone(c.buf.Bytes())
}

// plain joins parts into a body, and returns a strong ETag for it. Different bytes never share an
// ETag.
func (c *composer) plain(parts []part) (body Body, tag string) {
	sum := sha256.New()
	var own []byte
	for _, p := range parts {
		if p.shared == nil && own == nil {
			own = slices.Clip(p.own) // copied only if another part is appended
			continue
		}
		if p.shared == nil {
			own = append(own, p.own...)
			continue
		}
		sum.Write(binary.AppendUvarint(nil, uint64(len(own))))
		sum.Write(own)
		sum.Write(p.shared.sum[:])
		body.add(own)
		body.add(p.shared.plain)
		own = nil
	}
	sum.Write(binary.AppendUvarint(nil, uint64(len(own))))
	sum.Write(own)
	body.add(own)
	return body, base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:15])
}

// gzipHeader declares the method deflate, no file name, no time and an unknown system.
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}

// gzip joins parts into one gzip member, from separately compressed blocks.
func (c *composer) gzip(parts []part) Body {
	var body Body
	var sum, size uint32
	body.add(gzipHeader)
	var own [][]byte
	for _, p := range parts {
		sum = crc32.Update(sum, crc32.IEEETable, p.bytes())
		size += uint32(len(p.bytes()))
		if p.shared == nil {
			own = append(own, p.own)
			continue
		}
		if len(own) > 0 {
			body.add(c.deflate(false, own...))
			own = nil
		}
		body.add(p.shared.deflated)
	}
	end := c.deflate(true, own...)
	end = binary.LittleEndian.AppendUint32(end, sum)
	body.add(binary.LittleEndian.AppendUint32(end, size))
	return body.joined()
}

// joined merges small adjacent pieces, because a write costs more than a copy.
func (b Body) joined() Body {
	const small = 1 << 10
	out := Body{size: b.size}
	var own []byte
	for i, p := range b.pieces {
		last := i == len(b.pieces)-1
		if len(p) >= small && own == nil {
			out.pieces = append(out.pieces, p)
			continue
		}
		own = append(own, p...)
		if len(own) >= small || last {
			out.pieces, own = append(out.pieces, own), nil
		}
	}
	return out
}
