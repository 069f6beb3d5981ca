package viewer

import "github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"

// Load loads the content once.
func (v *Viewer) Load() { v.loader.load() }

// Read reads the content directory.
func (v *Viewer) Read() ([]book.File, error) {
	s, err := v.loader.directory.read()
	if err != nil {
		return nil, err
	}
	return s.files, nil
}
