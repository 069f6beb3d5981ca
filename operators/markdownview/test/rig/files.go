package rig

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"unicode/utf8"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
)

// Files returns a spec with the files of a folder, except Go files.
func Files(folder string) (viewv1.MarkdownViewSpec, error) {
	spec := viewv1.MarkdownViewSpec{Markdowns: map[string]string{}, BinaryAssets: map[string][]byte{}}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) == ".go" {
			return err
		}
		data, err := fs.ReadFile(os.DirFS(folder), name)
		switch {
		case err != nil:
			return err
		case utf8.Valid(data):
			spec.Markdowns[name] = string(data)
		default:
			spec.BinaryAssets[name] = data
		}
		return nil
	})
	if err != nil {
		return spec, fmt.Errorf("reading the files of a site: %w", err)
	}
	return spec, nil
}

// Guide returns a spec with the handbook of this repository.
func Guide() (viewv1.MarkdownViewSpec, error) {
	folder, err := FromRoot("..", "..", "docs", "guide")
	if err != nil {
		return viewv1.MarkdownViewSpec{}, err
	}
	return Files(folder)
}
