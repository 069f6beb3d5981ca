package static

import (
	"bytes"
	"runtime"
	_ "unsafe" // for go:linkname
)

// Kubernetes is the version of the built-in Kubernetes, including the leading v.
const Kubernetes = "v1.37.0"

// modinfo returns the build information between two markers of 16 bytes. Package runtime/debug
// could parse the build information, but it imports fmt and is therefore initialized too late.
//
//go:linkname modinfo runtime/debug.modinfo
func modinfo() string

// VersionLine returns the line that koboshi version prints.
func VersionLine() string {
	return "koboshi " + Koboshi() + ", Kubernetes " + Kubernetes + ", " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
}

// Koboshi returns the version of the program's own module.
func Koboshi() string {
	// The main module's line holds mod, the path, the version and, if known, a checksum.
	for _, line := range bytes.Split([]byte(modinfo()), []byte("\n")) {
		if f := bytes.Split(line, []byte("\t")); len(f) > 2 && string(f[0]) == "mod" && len(f[2]) > 0 {
			return string(f[2])
		}
	}
	return "(devel)"
}
