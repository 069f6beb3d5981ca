// Package datadir manages the folder in which a durable plane keeps its state.
//
// A folder is a data directory if it contains a marker file. The marker is written before
// anything else and records whether the store inside was ever complete, so that a damaged
// folder can be distinguished from a new one: a store that once held acknowledged writes
// is never silently recreated.
package datadir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/util/version"
)

// Format is the layout version that this program writes. A higher number in a
// marker means that a newer program wrote the folder.
const Format = 1

const (
	markerName = "koboshi.json"
	lockName   = "lock"
)

// These are the values of Marker.Store, the location of the state.
const (
	StoreOwn      = "own"      // in this folder
	StoreExternal = "external" // in an external etcd
)

// A Problem reports misuse of a data directory, and names the next action.
type Problem struct {
	Dir  string // the data directory
	What string // the problem, as one clause
	Next string // the next action, as one clause
}

func (p *Problem) Error() string {
	return fmt.Sprintf("data directory %s %s; %s", p.Dir, p.What, p.Next)
}

// Marker is the content of the marker file.
type Marker struct {
	// Format is the layout version; see the constant Format.
	Format int `json:"format"`
	// Kubernetes is the version that last wrote the store, such as "1.37.0".
	Kubernetes string `json:"kubernetes"`
	// Initialized is set once the store has answered for the first time; from then on, a missing or
	// broken store is treated as damage.
	Initialized bool `json:"initialized"`
	// Store is the location of the state, StoreOwn or StoreExternal, once
	// Initialized is set.
	Store string `json:"store,omitempty"`
	// Port is the port that the API server last used, so that running clients
	// find it at the same address after a restart. Zero means that no port has
	// been used yet.
	Port int `json:"port,omitempty"`
}

// Dir is an open data directory, locked against other processes until Close.
type Dir struct {
	path   string
	marker Marker
	lock   *os.File
}

// Open locks the data directory at path. Open creates the folder if it does not exist, and
// initializes the folder if it is empty. kubernetes is the running version, such as "1.37.0".
// Misuse is reported as *Problem.
func Open(path, kubernetes string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("resolving data directory: %w", err)
	}
	d := &Dir{path: path}
	if err := d.mkdir(); err != nil {
		return nil, err
	}
	found, err := d.readMarker()
	if err != nil {
		return nil, err
	}
	if !found {
		if err := d.mustBeEmpty(); err != nil {
			return nil, err
		}
	}
	if err := d.takeLock(); err != nil {
		return nil, err
	}
	if err := d.adopt(kubernetes); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// Path joins elements to the data directory's absolute path.
func (d *Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// Marker returns the content of the marker file.
func (d *Dir) Marker() Marker { return d.marker }

// Update changes the marker and writes it atomically.
func (d *Dir) Update(change func(*Marker)) error {
	next := d.marker
	change(&next)
	data, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", markerName, err)
	}
	if err := WriteFile(d.Path(markerName), append(data, '\n'), 0o600); err != nil {
		return err
	}
	d.marker = next
	return nil
}

// Damaged returns the error for a folder that once held a complete store, but no longer does.
func (d *Dir) Damaged(what string) error {
	return &Problem{Dir: d.path, What: "is damaged: " + what,
		Next: "restore it from a backup, or move it away to start over"}
}

// StoreMoved returns the error for a folder that belongs to a store other than the requested one:
// the folder's certificates match only the state in the store to which the folder belongs.
func (d *Dir) StoreMoved(store string) error {
	p := &Problem{Dir: d.path, What: "belongs to the etcd cluster that --etcd-servers named earlier", Next: "pass the same --etcd-servers, or choose another --data-dir"}
	if store == StoreOwn {
		p.What, p.Next = "has an etcd of its own", "omit --etcd-servers, or choose another --data-dir"
	}
	return p
}

// Close unlocks the folder. The lock file stays: if it were removed, two
// processes could hold locks on two files of the same name.
func (d *Dir) Close() error {
	return d.lock.Close()
}

func (d *Dir) mkdir() error {
	err := os.MkdirAll(d.path, 0o700)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrExist):
		return &Problem{Dir: d.path, What: "is not a directory", Next: "choose another --data-dir"}
	case unwritable(err):
		return d.unwritable()
	}
	return &Problem{Dir: d.path, What: fmt.Sprintf("cannot be created: %v", err), Next: "choose another --data-dir"}
}

func (d *Dir) readMarker() (found bool, err error) {
	data, err := os.ReadFile(d.Path(markerName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if unwritable(err) {
		return false, d.unwritable()
	}
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", markerName, err)
	}
	if err := json.Unmarshal(data, &d.marker); err != nil {
		return false, d.Damaged(markerName + " cannot be read")
	}
	if d.marker.Format < 1 {
		return false, d.Damaged(markerName + " has no format number")
	}
	return true, nil
}

// foreign reports whether a folder without a marker contains something that Koboshi did not create.
func foreign(e fs.DirEntry) bool {
	switch name := e.Name(); name {
	case lockName:
		return false // of a start that was killed before it had written the marker
	case "findings", "journal", "dev":
		return false // koboshi check and koboshi dev keep these in the same folder
	default:
		return !strings.HasPrefix(name, "."+markerName) // a temporary file of such a start
	}
}

func (d *Dir) mustBeEmpty() error {
	entries, err := os.ReadDir(d.path)
	if unwritable(err) {
		return d.unwritable()
	}
	if err != nil {
		return fmt.Errorf("reading data directory: %w", err)
	}
	if !slices.ContainsFunc(entries, foreign) {
		return nil
	}
	// Another process may have started to use the folder during the check.
	if found, err := d.readMarker(); found || err != nil {
		return err
	}
	return &Problem{Dir: d.path, What: "contains other files but no " + markerName + ", so Koboshi did not create it",
		Next: "choose an empty or new --data-dir"}
}

// takeLock locks the folder with flock. The kernel releases this lock when the
// process ends, for whatever reason, so a crash never leaves a stale lock.
func (d *Dir) takeLock() error {
	f, err := os.OpenFile(d.Path(lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if unwritable(err) {
		return d.unwritable()
	}
	if err != nil {
		return fmt.Errorf("locking data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(f.Name())
		_ = f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("locking data directory: %w", err)
		}
		who := "another process"
		if pid := strings.TrimSpace(string(holder)); pid != "" {
			who = "process " + pid
		}
		return &Problem{Dir: d.path, What: "is in use by " + who, Next: "stop that process, or choose another --data-dir"}
	}
	d.lock = f
	// The lock file contains the process ID, so that another process can
	// include this ID in its error.
	err = f.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintln(f, os.Getpid())
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing lock: %w", err), f.Close())
	}
	return nil
}

func (d *Dir) adopt(kubernetes string) error {
	// The marker is read again, even if there was none: another process may
	// have written one after the first read and before the lock.
	if _, err := d.readMarker(); err != nil {
		return err
	}
	if d.marker.Format > Format || newerMinor(d.marker.Kubernetes, kubernetes) {
		return &Problem{Dir: d.path,
			What: fmt.Sprintf("was written by a newer version (Kubernetes %s, format %d)", d.marker.Kubernetes, d.marker.Format),
			Next: "use that version, or choose another --data-dir"}
	}
	err := d.Update(func(m *Marker) { m.Format, m.Kubernetes = Format, kubernetes })
	if unwritable(err) {
		return d.unwritable()
	}
	if err != nil {
		return err
	}
	// The folder is often inside a Git checkout, and its secrets must not be
	// committed.
	return WriteFile(d.Path(".gitignore"), []byte("*\n"), 0o600)
}

func (d *Dir) unwritable() error {
	return &Problem{Dir: d.path, What: "cannot be read and written by this user",
		Next: "change its permissions, or choose another --data-dir"}
}

func unwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// newerMinor reports whether written has a higher major or minor version than
// running. Patch releases share one storage format.
func newerMinor(written, running string) bool {
	w, err := version.ParseGeneric(written)
	if err != nil {
		return false
	}
	r, err := version.ParseGeneric(running)
	if err != nil {
		return false
	}
	return w.Major() > r.Major() || w.Major() == r.Major() && w.Minor() > r.Minor()
}

// WriteFile replaces the file at path in one step, so that a reader sees either
// the old or the new content, even after a crash.
func WriteFile(path string, data []byte, perm fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
			err = fmt.Errorf("writing %s: %w", path, err)
		}
	}()
	if err := f.Chmod(perm); err != nil {
		return err
	}
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
