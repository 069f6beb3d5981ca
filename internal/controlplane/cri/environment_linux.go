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

// defaultPath is PATH for images that set none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment applies the image's and then the Pod's variables to the defaults.
// Nothing else of koboshi's own environment is passed on, since it may hold
// secrets. For the same reason HOME is not the invoking user's: a program that
// looks for credentials must find the Pod's or none.
func (p *process) environment() []string {
	all := map[string]string{"PATH": os.Getenv("PATH"), "HOME": "/"}
	if all["PATH"] == "" {
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

// find resolves the name of a program in the root directory of the calling
// thread. The container's own program is found at any of its paths.
func (p *process) find(name string, env []string) (string, error) {
	own := "/" + filepath.Base(p.program.Path)
	if name == p.program.Path && !isProgram(name) && isProgram(own) {
		return own, nil // a volume hides it
	}
	if strings.Contains(name, "/") {
		return name, nil // exec reports best what is wrong with it
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
