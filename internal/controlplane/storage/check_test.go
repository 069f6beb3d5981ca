package storage

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestCheckTellsDamageFromAWholeStore(t *testing.T) {
	t.Parallel()
	whole := filledStore(t)
	tests := map[string]struct {
		damage func(t *testing.T, dir string)
		what   string // part of the message; empty for an intact store
	}{
		"intact": {func(*testing.T, string) {}, ""},
		"no folder": {
			func(t *testing.T, dir string) { removeAll(t, dir) },
			"etcd/member/wal is missing or empty",
		},
		"wal missing": {
			func(t *testing.T, dir string) { removeAll(t, filepath.Join(dir, "member", "wal")) },
			"etcd/member/wal is missing or empty",
		},
		"wal empty": {
			func(t *testing.T, dir string) {
				removeAll(t, filepath.Join(dir, "member", "wal"))
				if err := os.Mkdir(filepath.Join(dir, "member", "wal"), 0o700); err != nil {
					t.Fatal(err)
				}
			},
			"etcd/member/wal is missing or empty",
		},
		"wal ends before the database": {
			func(t *testing.T, dir string) { truncate(t, only(t, dir, "member", "wal", "*.wal"), 1<<15) },
			"etcd/member/wal can be read up to entry",
		},
		"wal with garbage for a length": {
			func(t *testing.T, dir string) { breakLength(t, only(t, dir, "member", "wal", "*.wal"), 1<<15) },
			"etcd/member/wal can be read up to entry",
		},
		"db missing": {
			func(t *testing.T, dir string) { removeAll(t, database(dir)) },
			"etcd/member/snap/db is missing",
		},
		"db empty": {
			func(t *testing.T, dir string) { truncate(t, database(dir), 0) },
			"etcd/member/snap/db",
		},
		"db without its last page": {
			func(t *testing.T, dir string) { truncate(t, database(dir), usedBytes(t, dir)-1) },
			"etcd/member/snap/db is truncated",
		},
		"db without all but its roots": {
			func(t *testing.T, dir string) { truncate(t, database(dir), int64(2*os.Getpagesize())) },
			"etcd/member/snap/db is truncated",
		},
		"db within its first page": {
			func(t *testing.T, dir string) { truncate(t, database(dir), 100) },
			"etcd/member/snap/db cannot be read",
		},
		"db garbage": {
			func(t *testing.T, dir string) {
				if err := os.WriteFile(database(dir), []byte(strings.Repeat("garbage ", 1<<14)), 0o600); err != nil {
					t.Fatal(err)
				}
			},
			"etcd/member/snap/db cannot be read",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "etcd")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			test.damage(t, dir)
			err := Check(dir, errors.New)
			switch {
			case test.what == "" && err != nil:
				t.Errorf("Check: %v", err)
			case test.what != "" && (err == nil || !strings.Contains(err.Error(), test.what)):
				t.Errorf("Check: %v, want it to say %q", err, test.what)
			}
		})
	}
}

func TestCheckLeavesTheStoreAsItIs(t *testing.T) {
	t.Parallel()
	dir := filledStore(t)
	before, err := os.ReadFile(database(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(dir, errors.New); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(database(dir))
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("Check wrote to the database")
	}
	withStore(t, dir, func(c *clientv3.Client) {
		if _, err := c.Get(context.Background(), "a"); err != nil {
			t.Error(err)
		}
	})
}

// filledStore returns the folder of a stopped store.
func filledStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	withStore(t, dir, func(c *clientv3.Client) {
		for _, key := range []string{"a", "b", "c"} {
			if _, err := c.Put(context.Background(), key, strings.Repeat(key, 1<<15)); err != nil {
				t.Fatal(err)
			}
		}
	})
	return dir
}

// breakLength finds the first record of etcd's log that begins after offset,
// and overwrites the record's length with garbage.
func breakLength(t *testing.T, path string, offset int64) {
	t.Helper()
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(0)
	for at <= offset {
		// The low 56 bits hold the length of the record in bytes. The high bits
		// hold the padding to a multiple of eight (storage/wal/decoder.go).
		size := int64(binary.LittleEndian.Uint64(log[at:]) & (1<<56 - 1))
		if size == 0 {
			t.Fatalf("%s ends at %d", path, at)
		}
		at += 8 + (size+7)/8*8
	}
	copy(log[at:], "garbage ")
	if err := os.WriteFile(path, log, 0o600); err != nil {
		t.Fatal(err)
	}
}

func only(t *testing.T, pattern ...string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(pattern...))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v: %v, %v", pattern, found, err)
	}
	return found[0]
}

func database(dir string) string { return filepath.Join(dir, "member", "snap", "db") }

// usedBytes returns the number of bytes to which the newest root of the database refers.
// The database file is longer than the used part, since it grows in steps.
func usedBytes(t *testing.T, dir string) (size int64) {
	t.Helper()
	db, err := bolt.Open(database(dir), 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.View(func(tx *bolt.Tx) error { size = tx.Size(); return nil }); err != nil {
		t.Fatal(err)
	}
	return size
}

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func truncate(t *testing.T, path string, size int64) {
	t.Helper()
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}
