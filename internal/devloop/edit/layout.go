package edit

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// A Layout describes which files of a project matter.
type Layout struct {
	// Dir is the folder of the project. It is not a symbolic link. All other paths are relative to
	// it, with slashes.
	Dir string
	// Main is the folder of the main package. Its module belongs to the project even if it is
	// not the project's own module.
	Main string
	// Program holds patterns such as src/** that match the files of a program that needs no
	// build. If there are any, Go files have no special role.
	Program []string
	// Manifests and Samples are files or folders. Without them, manifests are in config, and
	// samples in config/samples.
	Manifests, Samples []string
}

// envName is the name of the file with variables of the environment.
const envName = ".env"

// The roles that a file can have in a project.
type fileRole int

const (
	otherFile fileRole = iota
	goFile
	testFile
	moduleFile
	headerFile  // the text at the top of generated files, a Makefile or PROJECT
	programFile // matches Layout.Program
	envFile
	sampleFile
	configFile
)

func (l Layout) roleOf(name string) fileRole {
	// A pattern such as ** may match manifests, too. They are not a part of the program.
	program := l.matches(name) && !slices.Contains([]string{".yaml", ".yml"}, path.Ext(name))
	switch {
	case name == envName:
		return envFile
	case !program && underAny(name, l.Samples, "config/samples"):
		return sampleFile
	case !program && underAny(name, l.Manifests, "config"):
		return configFile
	case l.matches(name):
		return programFile
	case len(l.Program) > 0:
		return otherFile
	}
	return roleOfGo(name)
}

// roleOfGo returns the role of a file for a program in Go.
func roleOfGo(name string) fileRole {
	switch base := path.Base(name); {
	case strings.HasSuffix(base, "_test.go"):
		return testFile
	case strings.HasSuffix(base, ".go"):
		return goFile
	case base == "go.mod" || base == "go.sum" || base == "go.work" || name == "vendor/modules.txt":
		return moduleFile
	case name == "Makefile" || name == "PROJECT" || strings.HasPrefix(name, "hack/"):
		return headerFile
	}
	return otherFile
}

// underAny reports whether a file is, or is in, one of the paths, or in the usual folder if
// there are no paths.
func underAny(name string, paths []string, usual string) bool {
	if len(paths) == 0 {
		paths = []string{usual}
	}
	return slices.ContainsFunc(paths, func(at string) bool {
		at = path.Clean(at)
		return at == "." || name == at || strings.HasPrefix(name, at+"/")
	})
}

func (l Layout) matches(name string) bool {
	return slices.ContainsFunc(l.Program, func(pattern string) bool {
		return doublestar.MatchUnvalidated(path.Clean(pattern), name)
	})
}

// names reports whether a pattern of Program begins with the folder.
func (l Layout) names(folder string) bool {
	return slices.ContainsFunc(l.Program, func(pattern string) bool {
		return strings.HasPrefix(path.Clean(pattern), folder+"/")
	})
}
