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
	// packSize is the maximum size of the files in one ConfigMap, which may hold 1 MiB. The
	// rest of the ConfigMap is reserved for metadata, because the API server also limits
	// the size of the complete object.
	packSize = 900_000
	// maxFile is the maximum size of a ConfigMap.
	maxFile = 1 << 20
	// hashLength is the number of hexadecimal digits of a hash. Sixteen digits (64 bits)
	// are enough to distinguish the versions of one site, and fit into names and labels.
	hashLength = 16
)

// Pack holds the files of one ConfigMap. The keys of a Pack do not contain the paths, because paths
// may have directories and characters that are not allowed in keys.
type Pack struct {
	Items []Item
}

// Item is a file and its key.
type Item struct {
	Key  string
	File book.File
}

// Packs keeps the order of the files, and distributes them over as few ConfigMaps as
// possible.
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

// Hash returns a hash of the paths and contents of these files, in this order.
func Hash(files []book.File) string {
	h := sha256.New()
	for _, file := range files {
		field(h, file.Path)
		field(h, string(file.Data))
	}
	return short(h.Sum(nil))
}

// HashOf returns a hash of any data, in the same form as Hash.
func HashOf(data []byte) string {
	sum := sha256.Sum256(data)
	return short(sum[:])
}

func short(sum []byte) string { return hex.EncodeToString(sum)[:hashLength] }

// field writes a value and its length, so that different lists of values never produce the
// same bytes.
func field(w io.Writer, value string) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(value)))
	_, _ = w.Write(length[:])
	_, _ = io.WriteString(w, value)
}
