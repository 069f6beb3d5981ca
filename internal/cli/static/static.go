// Package static answers --help, completion and version before Kubernetes is initialized.
//
// Initializing all of Kubernetes takes a quarter of a second of processor time. A shell that loads
// the completion script would spend that time at each start. Among the packages whose imports are
// all initialized, Go next initializes the package whose path comes first in alphabetical order;
// see the package comment of internal/envtest/shim. This package therefore imports only packages
// that are initialized no later than package os. It avoids fmt and strings, because these are
// initialized only after packages whose paths sort after github.com. Package cli generates the
// texts, and a test there compares them with the output of the commands. If this package has no
// text for a request, the command itself answers the request.
package static

import (
	"bytes"
	"embed"
	"os"
	"runtime"
)

//go:embed text
var texts embed.FS

func init() { //nolint:gochecknoinits // this package must run before all others
	if !Called() {
		return
	}
	if text, ok := Text(os.Args[1:]); ok {
		_, _ = os.Stdout.WriteString(text)
		os.Exit(0)
	}
}

// Called reports whether the program runs under its own name and on the system for which
// the texts were generated. On other systems the flags may differ.
func Called() bool {
	name := []byte(os.Args[0])
	return string(name[bytes.LastIndexByte(name, '/')+1:]) == "koboshi" && runtime.GOOS == "linux"
}

// Text returns the output of koboshi with these arguments, if it is known.
func Text(args []string) (string, bool) {
	if len(args) > 0 && args[0] == "version" {
		switch {
		case len(args) == 1:
			return VersionLine(), true
		case len(args) == 3 && args[1] == "-o" && args[2] == "json":
			return VersionJSON(), true
		}
	}
	name, ok := file(args)
	if !ok {
		return "", false
	}
	text, err := texts.ReadFile("text/" + name)
	return string(text), err == nil
}

// file returns the name of the file with the output for these arguments. Only requests for
// help or for a completion script have an output file.
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
	name := kind
	for _, verb := range verbs {
		if bytes.ContainsAny([]byte(verb), "-_/.") {
			return "", false
		}
		name += "_" + verb
	}
	return name, true
}
