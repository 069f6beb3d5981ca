package cri

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// defaultPath is the PATH of programs if koboshi itself has none, or in the files of an image.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment returns the program's variables: the image's variables override
// the defaults, and the Pod's variables override both. From koboshi's own
// environment, the program gets only PATH, since other variables may hold
// secrets. HOME is not the invoking user's home, so that a program that looks
// for credentials finds the Pod's credentials or none.
func (p *process) environment() []string {
	all := map[string]string{"PATH": os.Getenv("PATH"), "HOME": "/"}
	if all["PATH"] == "" || p.program.Root != "" {
		all["PATH"] = defaultPath
	}
	if name := p.sandbox.config.GetHostname(); name != "" {
		all["HOSTNAME"] = name
	}
	if p.config.GetTty() {
		all["TERM"] = "xterm"
	}
	maps.Copy(all, p.program.Env)
	for _, e := range p.config.GetEnvs() {
		all[e.GetKey()] = string(e.GetValue())
	}
	list := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list
}

// find resolves the name of a program in the root directory of the calling thread.
// The container's own program is found at any of the paths where it appears.
func (p *process) find(name string, env []string) (string, error) {
	own := "/" + filepath.Base(p.program.Path)
	if name == p.program.Path && !isProgram(name) && isProgram(own) {
		return own, nil // a volume hides the program
	}
	if strings.Contains(name, "/") {
		return name, nil // exec reports the best error for a wrong path
	}
	for _, dir := range filepath.SplitList(value(env, "PATH")) {
		if path := filepath.Join(dir, name); filepath.IsAbs(path) && isProgram(path) {
			return path, nil
		}
	}
	if name == filepath.Base(own) && isProgram(own) {
		return own, nil
	}
	return "", complaint(fmt.Sprintf("exec: %q: executable file not found in $PATH", name))
}

func value(env []string, name string) string {
	for _, e := range env {
		if value, found := strings.CutPrefix(e, name+"="); found {
			return value
		}
	}
	return ""
}

func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && unix.Access(path, unix.X_OK) == nil
}
