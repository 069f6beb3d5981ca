// Package home gives the programs of a check a separate home directory and a small
// environment, so that they see neither the user's home directory nor the user's
// environment.
//
//	DIR/                 HOME; emptied before each start, like the files of a container
//	├── .kube/config     the kubeconfig, for programs with a fixed path
//	├── .cache/          XDG_CACHE_HOME; kept, because caches are only slow to fill
//	├── .config/, .local/share/, .local/state/
//	└── .run/            XDG_RUNTIME_DIR
package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// folders maps the XDG variables to their folders in a home directory.
var folders = []struct{ name, folder string }{
	{"XDG_CONFIG_HOME", ".config"},
	{"XDG_CACHE_HOME", ".cache"},
	{"XDG_DATA_HOME", ".local/share"},
	{"XDG_STATE_HOME", ".local/state"},
	{"XDG_RUNTIME_DIR", ".run"},
}

const (
	// cache is the only folder that Make does not empty.
	cache = ".cache"
	// kube is a folder that Make empties but does not replace, because it may be mounted elsewhere.
	kube = ".kube"
)

// tools maps environment variables of language tools to their default folders in the user's home
// directory. Language tools keep programs, libraries and build results in these folders, and would
// otherwise have to download or build them again at each start. Credentials are kept in other
// folders.
var tools = []struct{ name, folder string }{
	{"GOPATH", "go"},
	{"GOMODCACHE", ""},
	{"GOCACHE", ".cache/go-build"},
	{"PYTHONUSERBASE", ".local"},
	{"PYENV_ROOT", ".pyenv"},
	{"RBENV_ROOT", ".rbenv"},
	{"ASDF_DATA_DIR", ".asdf"},
	{"VOLTA_HOME", ".volta"},
	{"RUSTUP_HOME", ".rustup"},
}

// Kubeconfig returns the path of the kubeconfig in a home directory.
func Kubeconfig(dir string) string { return filepath.Join(dir, kube, "config") }

// Make creates a home directory. If the directory exists, Make removes everything in it
// except caches. If kubeconfig is nil, Make writes no kubeconfig.
func Make(dir string, kubeconfig []byte) error {
	if err := empty(dir); err != nil {
		return fmt.Errorf("creating a home directory: %w", err)
	}
	for _, f := range folders {
		// Programs refuse a runtime directory that others can read.
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(f.folder)), 0o700); err != nil {
			return fmt.Errorf("creating a home directory: %w", err)
		}
	}
	if kubeconfig == nil {
		return nil
	}
	path := Kubeconfig(dir)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, kubeconfig, 0o600)
	}
	if err != nil {
		return fmt.Errorf("creating a home directory: %w", err)
	}
	return nil
}

func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case entry.Name() == cache:
			continue
		case entry.Name() == kube && entry.IsDir():
			err = empty(path)
		default:
			err = os.RemoveAll(path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Environment returns the complete environment for a program whose home directory is dir:
// PATH, LANG and TMPDIR of this process, HOME, the XDG variables, and the folders of
// language tools.
func Environment(dir string) []string {
	env := []string{"HOME=" + dir}
	for _, name := range []string{"PATH", "LANG", "TMPDIR"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, f := range folders {
		env = append(env, f.name+"="+filepath.Join(dir, filepath.FromSlash(f.folder)))
	}
	return append(env, toolFolders()...)
}

// toolFolders returns the variables of language tools, with the values that the tools use
// in the user's environment.
func toolFolders() (env []string) {
	user, err := os.UserHomeDir()
	for _, t := range tools {
		value := os.Getenv(t.name)
		if value == "" && err == nil && t.folder != "" {
			value = filepath.Join(user, filepath.FromSlash(t.folder))
			if t.name == "GOCACHE" {
				value = goCache(value)
			}
			if info, err := os.Stat(value); err != nil || !info.IsDir() {
				continue
			}
		}
		if value != "" {
			env = append(env, t.name+"="+value)
		}
	}
	return env
}

// goCache returns Go's default cache folder on this system.
func goCache(otherwise string) string {
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "go-build")
	}
	return otherwise
}
