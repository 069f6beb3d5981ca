package storage

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Check looks at a store that once held data before etcd opens it: where etcd
// finds no write-ahead log it would begin a new, empty store, and a truncated
// database would crash the process. damaged makes the error.
func Check(dir string, damaged func(what string) error) error {
	wal, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil {
		return fmt.Errorf("looking for etcd's log: %w", err)
	}
	if len(wal) == 0 {
		return damaged("etcd/member/wal is missing or empty")
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
