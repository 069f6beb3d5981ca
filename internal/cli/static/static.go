// Package static answers --help, version and completion before Kubernetes is
// initialised.
//
// Initialising all of Kubernetes takes a quarter of a second of processor time,
// which a shell would spend at each start for its completion script. This package
// imports the standard library only, so its init runs before most of that, as the
// package comment of internal/envtest/shim explains. Package cli generates the
// texts, and a test there compares them with the output of the commands. Whatever
// has no text here is left to the commands.
package static

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// Kubernetes is the version of the built-in Kubernetes, with its v.
const Kubernetes = "v1.37.0"

//go:embed text
var texts embed.FS

func init() { //nolint:gochecknoinits // this package exists to run before all others
	// The flags of other systems may differ.
	if filepath.Base(os.Args[0]) != "koboshi" || runtime.GOOS != "linux" {
		return
	}
	if text, ok := Text(os.Args[1:]); ok {
		_, _ = os.Stdout.WriteString(text)
		os.Exit(0)
	}
}

// Text returns the output of koboshi with these arguments, if it is known.
func Text(args []string) (string, bool) {
	if len(args) == 1 && args[0] == "version" {
		return Version(), true
	}
	name, ok := file(args)
	if !ok {
		return "", false
	}
	text, err := texts.ReadFile("text/" + name)
	return string(text), err == nil
}

// Version returns the line that koboshi version prints.
func Version() string {
	return fmt.Sprintf("koboshi %s, Kubernetes %s, %s, %s/%s\n", Koboshi(), Kubernetes, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Koboshi returns the version of the program's own module.
func Koboshi() string {
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" {
		return build.Main.Version
	}
	return "(devel)"
}

// file returns the name of the file with the output for these arguments. Only a
// request for help, and a completion script, can have one.
func file(args []string) (string, bool) {
	last := len(args) - 1
	switch {
	case len(args) == 0:
		return "koboshi", true
	case args[last] == "--help" || args[last] == "-h":
		return fileOf("koboshi", args[:last])
	case args[0] == "help":
		return fileOf("koboshi", args[1:])
	case args[0] == "completion" && len(args) == 2:
		return fileOf("script", args[1:])
	}
	return "", false
}

func fileOf(kind string, verbs []string) (string, bool) {
	for _, verb := range verbs {
		if strings.ContainsAny(verb, "-_/.") {
			return "", false
		}
	}
	return strings.Join(append([]string{kind}, verbs...), "_"), true
}
