package storage

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
)

// Check looks at a store that once held data before etcd opens it: where etcd
// finds no write-ahead log it would begin a new, empty store; a log that it
// cannot read from the start it would cut to nothing and then crash; and a
// truncated database would crash it too. damaged makes the error.
func Check(dir string, damaged func(what string) error) error {
	files, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil {
		return fmt.Errorf("looking for etcd's log: %w", err)
	}
	if len(files) == 0 {
		return damaged("etcd/member/wal is missing or empty")
	}
	if err := readLog(files); err != nil {
		return damaged(fmt.Sprintf("etcd/member/wal cannot be read: %v", err))
	}
	path := filepath.Join(dir, "member", "snap", "db")
	info, err := os.Stat(path)
	if err != nil {
		return damaged("etcd/member/snap/db is missing")
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return damaged(fmt.Sprintf("etcd/member/snap/db cannot be read: %v", err))
	}
	defer func() { _ = db.Close() }()
	// The pages that the newest root speaks of must lie within the file.
	return db.View(func(tx *bolt.Tx) error {
		if tx.Size() > info.Size() {
			return damaged(fmt.Sprintf("etcd/member/snap/db is cut off: %d of %d bytes", info.Size(), tx.Size()))
		}
		return nil
	})
}

// readLog reads etcd's log as etcd's own Verify does, without writing. A log
// may end in the middle of a record, for then the process was killed while it
// wrote it; etcd drops that record, which nobody was told of.
func readLog(files []string) error {
	readers := make([]fileutil.FileReader, 0, len(files))
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		readers = append(readers, fileutil.NewFileReader(f))
	}
	decoder := wal.NewDecoder(readers...)
	var record walpb.Record
	for records := 0; ; records++ {
		switch err := decoder.Decode(&record); {
		case records == 0 && err != nil:
			return fmt.Errorf("it has no beginning: %w", err)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		// Each file begins with the checksum of those before it.
		if record.GetType() == wal.CrcType {
			if sum := decoder.LastCRC(); sum != 0 && record.Validate(sum) != nil {
				return wal.ErrCRCMismatch
			}
			decoder.UpdateCRC(record.GetCrc())
		}
	}
}
