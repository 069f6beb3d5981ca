package storage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
)

// Check examines a store that once held data, before etcd opens it. If the
// write-ahead log is missing, etcd would start a new, empty store. If the log
// is unreadable from its start, etcd would truncate it to nothing and then
// crash. If the log ends before the last entry of the database, etcd would wait
// forever. If the database is truncated, etcd would crash. Check calls damaged
// to create its error.
func Check(dir string, damaged func(what string) error) error {
	files, err := logFiles(filepath.Join(dir, "member", "wal"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return damaged("etcd/member/wal is missing or empty")
	}
	last, err := readLog(files)
	if circumstantial(err) {
		return fmt.Errorf("reading etcd's log: %w", err)
	}
	if err != nil {
		return damaged(fmt.Sprintf("etcd/member/wal cannot be read: %v", err))
	}
	path := filepath.Join(dir, "member", "snap", "db")
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return damaged("etcd/member/snap/db is missing")
	}
	if err != nil {
		return fmt.Errorf("examining etcd's database: %w", err)
	}
	if info.Size() == 0 {
		return damaged("etcd/member/snap/db is empty") // bolt would try to create a new database
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: time.Second})
	if circumstantial(err) {
		return fmt.Errorf("opening etcd's database: %w", err)
	}
	if err != nil {
		return damaged(fmt.Sprintf("etcd/member/snap/db cannot be read: %v", err))
	}
	defer func() { _ = db.Close() }()
	// The pages to which the newest root refers must be within the file.
	return db.View(func(tx *bolt.Tx) error {
		if tx.Size() > info.Size() {
			return damaged(fmt.Sprintf("etcd/member/snap/db is truncated: %d of %d bytes", info.Size(), tx.Size()))
		}
		if applied := consistentIndex(tx); applied > last {
			return damaged(fmt.Sprintf("etcd/member/wal can be read up to entry %d, but the database has entry %d", last, applied))
		}
		return nil
	})
}

// consistentIndex returns the index of the last log entry that was applied to
// the database, or 0 if there is none. An entry is in the log and on the disk
// before it is applied.
func consistentIndex(tx *bolt.Tx) uint64 {
	bucket := tx.Bucket(schema.Meta.Name())
	if bucket == nil {
		return 0
	}
	index := bucket.Get(schema.MetaConsistentIndexKeyName)
	if len(index) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(index)
}

// circumstantial reports whether an error comes from the system, such as a
// missing permission or too many open files, and not from the data.
func circumstantial(err error) bool {
	var path *fs.PathError
	var call *os.SyscallError
	return errors.As(err, &path) || errors.As(err, &call) || errors.Is(err, bolterrors.ErrTimeout)
}

// logFiles lists the files of etcd's log in order.
func logFiles(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the files of etcd's log: %w", err)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".wal" {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, nil
}

// readLog reads etcd's log as etcd's own Verify does, without writing, and
// returns the index of its last entry. A log may end in the middle of a record
// if the process was killed during the write; etcd drops that record, which was
// never acknowledged. A record with garbage in place of its length looks like a
// record that was cut off.
func readLog(files []string) (last uint64, err error) {
	readers := make([]fileutil.FileReader, 0, len(files))
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return 0, err
		}
		defer func() { _ = f.Close() }()
		readers = append(readers, fileutil.NewFileReader(f))
	}
	decoder := wal.NewDecoder(readers...)
	var record walpb.Record
	for records := 0; ; records++ {
		switch err := decoder.Decode(&record); {
		case records == 0 && err != nil:
			return 0, fmt.Errorf("the first record of etcd's log is missing or invalid: %w", err)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return last, nil
		case err != nil:
			return 0, err
		}
		if record.GetType() == wal.EntryType {
			entry := wal.MustUnmarshalEntry(record.Data) // its checksum was correct
			last = entry.GetIndex()
		}
		// Each file begins with the checksum of the previous files.
		if record.GetType() == wal.CrcType {
			if sum := decoder.LastCRC(); sum != 0 && record.Validate(sum) != nil {
				return 0, wal.ErrCRCMismatch
			}
			decoder.UpdateCRC(record.GetCrc())
		}
	}
}
