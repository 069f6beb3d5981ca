package main

import (
	"bytes"
	"errors"
	"io/fs"
)

// sameFiles returns an error that lists the files of want that differ or are missing
// in got.
func sameFiles(want, got fs.FS) error {
	var errs []error
	walked := fs.WalkDir(want, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		wanted, err := fs.ReadFile(want, name)
		if err != nil {
			return err
		}
		if found, err := fs.ReadFile(got, name); err != nil || !bytes.Equal(found, wanted) {
			errs = append(errs, errors.New(name))
		}
		return nil
	})
	return errors.Join(append(errs, walked)...)
}
