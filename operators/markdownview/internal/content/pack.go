package content

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"strconv"

	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
)

const (
	// packSize is up to how many bytes files share a ConfigMap, which may hold
	// 1 MiB: some room is left for its metadata in the API server's own limit.
	packSize = 900_000
	// maxFile is the most a ConfigMap holds.
	maxFile = 1 << 20
	// hashLength is in hexadecimal digits: 64 bits tell the versions of one site
	// apart, and fit names and labels.
	hashLength = 16
)

// Pack is what one ConfigMap holds of a site. Its keys say nothing of the paths:
// those may have directories, and letters that keys cannot.
type Pack struct {
	Items []Item
}

// Item is a file under its key.
type Item struct {
	Key  string
	File book.File
}

// Packs distributes files, in their order, over as few ConfigMaps as that order
// allows.
func Packs(files []book.File) []Pack {
	var packs []Pack
	size := 0
	for _, file := range files {
		if len(packs) == 0 || size+len(file.Data) > packSize {
			packs = append(packs, Pack{})
			size = 0
		}
		last := &packs[len(packs)-1]
		last.Items = append(last.Items, Item{Key: strconv.Itoa(len(last.Items)), File: file})
		size += len(file.Data)
	}
	return packs
}

// Hash tells these files, in this order, from any other: by paths and by
// content.
func Hash(files []book.File) string {
	h := sha256.New()
	for _, file := range files {
		field(h, file.Path)
		field(h, string(file.Data))
	}
	return short(h.Sum(nil))
}

// HashOf is a hash of the same form of anything else.
func HashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return short(sum[:])
}

func short(sum []byte) string { return hex.EncodeToString(sum)[:hashLength] }

// field writes a value with its length, so that no two lists look the same.
func field(w io.Writer, value string) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(value)))
	_, _ = w.Write(length[:])
	_, _ = io.WriteString(w, value)
}
