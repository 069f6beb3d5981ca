package project

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// commandHint completes the advice to give a command after --. It names the command that the
// project's files suggest, and the flags for its installation. It returns "" if it finds
// nothing.
func (p *Project) commandHint() string {
	hint := ""
	if command := p.suggestedCommand(); command != "" {
		hint = ", such as -- " + command
	}
	if flags := p.installationFlags(); flags != "" && !p.options.installs() {
		hint += ", and name its installation with " + flags
	}
	return hint
}

// installationFlags names the flags for the installation that the project contains, each with
// a value, or returns "".
func (p *Project) installationFlags() string {
	manifests, charts := p.search(manifestKind)
	var flags []string
	for _, found := range []struct {
		flag  string
		paths []string
	}{{flagHelm, charts}, {flagManifests, manifests}} {
		if len(found.paths) > 0 {
			flags = append(flags, found.flag+" "+found.paths[0])
		}
	}
	return strings.Join(flags, " or ")
}

// bareHint reports a command without an installation, although the project contains one. It
// returns "" if nothing is missing.
func (p *Project) bareHint() string {
	if len(p.options.Command) == 0 || p.options.installs() || len(p.Subject.Install) > 0 || p.options.CRDs+p.options.RBAC != "" {
		return ""
	}
	flags := p.installationFlags()
	if flags == "" {
		return ""
	}
	return fmt.Sprintf("the controller runs as an administrator and without CRDs, because only its command is given (name its installation with %s)", flags)
}

// suggestedCommand returns the command line that the project's files suggest, or "".
func (p *Project) suggestedCommand() string {
	if script := p.nodeScript(); script != "" {
		return "node " + script
	}
	if !p.isPython() {
		return ""
	}
	if script := p.pythonScript(); script != "" {
		return "python3 " + script
	}
	return "python3 SCRIPT"
}

var nodeStart = regexp.MustCompile(`^(?:node +)?(\S+\.[cm]?js)$`)

// nodeScript returns the script that package.json starts, if it exists, or "".
func (p *Project) nodeScript() string {
	data, err := os.ReadFile(filepath.Join(p.Dir, "package.json"))
	if err != nil {
		return ""
	}
	var content struct {
		Main    string
		Scripts struct{ Start string }
	}
	if json.Unmarshal(data, &content) != nil {
		return ""
	}
	scripts := []string{content.Main}
	if found := nodeStart.FindStringSubmatch(strings.TrimSpace(content.Scripts.Start)); found != nil {
		scripts = []string{found[1], content.Main}
	}
	for _, script := range append(scripts, "index.js") {
		if script = filepath.Clean(script); filepath.IsLocal(script) && isFile(filepath.Join(p.Dir, script)) {
			return script
		}
	}
	return ""
}

// pythonFiles mark a project in Python.
var pythonFiles = []string{"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile"}

func (p *Project) isPython() bool {
	return slices.ContainsFunc(pythonFiles, func(name string) bool { return isFile(filepath.Join(p.Dir, name)) })
}

// pythonScripts are the usual names of the script with which a program starts.
var pythonScripts = []string{"__main__.py", "main.py", "app.py", "operator.py", "controller.py"}

// pythonScript returns the script with a usual name in the project's folder, in src or in a
// package in these, or "".
func (p *Project) pythonScript() string {
	for _, pattern := range []string{".", "src", "*", "src/*"} {
		for _, name := range pythonScripts {
			found, _ := filepath.Glob(filepath.Join(p.Dir, pattern, name))
			found = slices.DeleteFunc(found, func(path string) bool {
				return !isFile(path) || slices.Contains(testFolders, filepath.Base(filepath.Dir(path)))
			})
			if len(found) > 0 {
				return p.rel(found[0])
			}
		}
	}
	return ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
