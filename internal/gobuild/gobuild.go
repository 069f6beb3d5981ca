// Package gobuild has the flags and the environment with which managers are built: in koboshi dev
// and for images. Common flags let both use the same entries of the compiler's cache.
package gobuild

import "os"

// ReleaseFlags returns the flags of go build for a program without symbols, whose content does not
// depend on the folder of the project or on its repository.
func ReleaseFlags() []string { return []string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w"} }

// Environment returns the environment of the process. Unless the user wants something else, cgo is
// off, because the program must run without the libraries of this machine.
func Environment() []string {
	env := os.Environ()
	if _, ok := os.LookupEnv("CGO_ENABLED"); !ok {
		env = append(env, "CGO_ENABLED=0")
	}
	return env
}
