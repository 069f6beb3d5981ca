// Package page holds the page of the inspector: ES modules that need no build, and ask package
// api for everything that they show.
package page

import (
	"embed"
	"io/fs"
)

//go:embed files
var files embed.FS

// Files returns the files of the page.
func Files() fs.FS {
	sub, err := fs.Sub(files, "files")
	if err != nil {
		panic(err) // the name is wrong: a bug in this function
	}
	return sub
}
