package scaffold

import (
	"embed"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// Templates holds the files of an example project, by paths such as init/Makefile. The first
// element of a path is the layer.
type Templates map[string][]byte

// layers holds the templates of this program. A test composes the layers, and compiles and
// tests the result.
//
//go:embed all:_layers
var layers embed.FS

// embedded returns the templates of this program. The caller must not change them.
var embedded = sync.OnceValue(func() Templates {
	t := Templates{}
	err := fs.WalkDir(layers, "_layers", func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			t[strings.TrimPrefix(file, "_layers/")], err = layers.ReadFile(file)
		}
		return err
	})
	if err != nil {
		panic(err) // embedded files can always be read
	}
	return t
})

// layer returns the paths of the files in a layer, sorted and without the name of the layer.
func (t Templates) layer(name string) []string {
	var files []string
	for file := range t {
		if rest, ok := strings.CutPrefix(file, name+"/"); ok {
			files = append(files, rest)
		}
	}
	slices.Sort(files)
	return files
}

// header returns the header of the templates.
func (t Templates) header() string { return string(t[path.Join(layerInit, headerPath)]) }

// paths returns the paths of all files, sorted.
func (t Templates) paths() []string { return slices.Sorted(maps.Keys(t)) }
