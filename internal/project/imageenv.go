package project

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// imageVariable matches a line of a Dockerfile that sets one variable.
var imageVariable = regexp.MustCompile(`^ENV\s+([A-Za-z_][A-Za-z0-9_]*)(?:=|\s+)"?([^"\s]+)"?\s*$`)

// noteImageEnvironment notes the variables that the project's Dockerfile sets in the final
// image. In a cluster, the controller gets them from the image; here, it is not started from
// the image. Paths are left out, because they exist only in the image.
func (p *Project) noteImageEnvironment() {
	data, err := os.ReadFile(filepath.Join(p.Dir, "Dockerfile"))
	if err != nil {
		return
	}
	var flags []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(strings.ToUpper(line), "FROM ") {
			flags = nil // the variables of an earlier stage are not in the final image
		}
		found := imageVariable.FindStringSubmatch(line)
		if found == nil || strings.ContainsAny(found[2], "/$\\") || p.sets(found[1]) || slices.Contains(buildVariables, found[1]) {
			continue
		}
		value := found[2]
		if secretVariable.MatchString(found[1]) {
			value = "…" // notes are a part of reports
		}
		flags = append(flags, fmt.Sprintf("%s %s=%s", flagEnv, found[1], value))
	}
	if len(flags) > 0 {
		p.note("the Dockerfile sets variables that the controller does not get here (if it needs them, use %s)", strings.Join(flags, " "))
	}
}

// secretVariable matches the names of variables that may hold a credential.
var secretVariable = regexp.MustCompile(`(?i)passw|token|secret|credential|key`)

// buildVariables matter only while an image is built.
var buildVariables = []string{"CGO_ENABLED", "GO111MODULE", "GOFLAGS", "GOOS", "GOARCH", "GOPROXY", "DEBIAN_FRONTEND", "LANG", "LC_ALL", "PIP_NO_CACHE_DIR"}

// sets reports whether the environment of the controller has the variable.
func (p *Project) sets(name string) bool {
	return slices.ContainsFunc(slices.Concat(p.Subject.Env, p.options.Env), func(entry string) bool {
		return strings.HasPrefix(entry, name+"=")
	})
}
