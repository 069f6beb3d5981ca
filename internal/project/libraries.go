package project

import (
	"debug/buildinfo"
	"fmt"
	"go/version"
	"runtime/debug"

	"golang.org/x/mod/semver"
)

// Until v1.0.2, github.com/modern-go/reflect2, which github.com/json-iterator/go uses, calls a function of
// the runtime with the parameters that it had before Go 1.18. Reading a map with it panics.
const (
	reflect2       = "github.com/modern-go/reflect2"
	rightReflect2  = "v1.0.2"
	changedRuntime = "go1.18"
)

// noteLibraries notes that a program cannot work, because the Go version with which it was built is too
// new for one of its libraries. Its panics would look like bugs of the controller.
func (p *Project) noteLibraries(program string) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return // it is no Go program
	}
	if broken := brokenLibrary(info); broken != "" {
		p.note("%s", broken)
	}
}

// brokenLibrary describes a library of a program that panics in every program built with its Go version,
// or returns "".
func brokenLibrary(info *debug.BuildInfo) string {
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Path == reflect2 && semver.Compare(m.Version, rightReflect2) < 0 && version.Compare(info.GoVersion, changedRuntime) >= 0 {
			return fmt.Sprintf("the controller was built by %s with %s %s, which panics when it reads a map in a program built by Go 1.18 or later (run go get %s@%s in its module)",
				info.GoVersion, reflect2, m.Version, reflect2, rightReflect2)
		}
	}
	return ""
}
