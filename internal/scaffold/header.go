package scaffold

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// headerPath is the file with the comment, usually a license, at the top of each Go file.
// controller-gen and kubebuilder use the same file.
const headerPath = "hack/boilerplate.go.txt"

// The licenses that a new project can have, with kubebuilder's names.
const (
	licenseApache = "apache2"
	licenseNone   = "none"
)

// header returns the header of a new project.
func (o *InitOptions) header() (string, error) {
	if o.LicenseFile != "" {
		if o.License != "" || o.Owner != "" {
			return "", errors.New("--license-file names the whole text, so omit --license and --owner")
		}
		data, err := os.ReadFile(o.LicenseFile)
		if err != nil {
			return "", fmt.Errorf("--license-file: %w", err)
		}
		return thisYear(string(data)), checkHeader(o.LicenseFile, data)
	}
	if strings.Contains(o.Owner, "*/") {
		return "", fmt.Errorf("--owner %q: the name is written into a Go comment, so it cannot contain */", o.Owner)
	}
	var paragraphs []string
	if o.Owner != "" {
		paragraphs = append(paragraphs, fmt.Sprintf("Copyright %d %s.", time.Now().Year(), strings.TrimSuffix(o.Owner, ".")))
	}
	switch cmp.Or(o.License, licenseApache) {
	case licenseApache:
		paragraphs = append(paragraphs, strings.TrimSuffix(strings.TrimPrefix(embedded().header(), "/*\n"), "\n*/\n"))
	case licenseNone:
	default:
		return "", fmt.Errorf("unknown license %q; use --license %s, --license %s, or a text of your own with --license-file", o.License, licenseApache, licenseNone)
	}
	if len(paragraphs) == 0 {
		return "", nil
	}
	return "/*\n" + strings.Join(paragraphs, "\n\n") + "\n*/\n", nil
}

// headerOf returns the header of the project in a folder, or "" if it has none.
func headerOf(dir string) (string, error) {
	name := filepath.Join(dir, filepath.FromSlash(headerPath))
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return string(data), checkHeader(headerPath, data)
}

// checkHeader returns an error if the text consists of anything but Go comments.
func checkHeader(name string, text []byte) error {
	set := token.NewFileSet()
	var s scanner.Scanner
	s.Init(set.AddFile(name, set.Base(), len(text)), text, func(token.Position, string) {}, scanner.ScanComments)
	for {
		at, tok, _ := s.Scan()
		switch {
		case s.ErrorCount > 0 || tok != token.EOF && tok != token.COMMENT:
			return fmt.Errorf("%s:%d: this is not a Go comment; begin the text with /* and end it with */", name, max(1, set.Position(at).Line))
		case tok == token.EOF:
			return nil
		}
	}
}

// thisYear replaces the word YEAR, as controller-gen does with its option year.
func thisYear(header string) string {
	return strings.ReplaceAll(header, " YEAR", fmt.Sprintf(" %d", time.Now().Year()))
}

// withHeader replaces the header of the templates.
func (s scaffolding) withHeader(name string, content []byte) []byte {
	if name == headerPath {
		return []byte(s.header)
	}
	if path.Ext(name) != ".go" {
		return content
	}
	header := strings.TrimSpace(s.header)
	if header != "" {
		header = thisYear(header) + "\n\n"
	}
	example := s.templates.header()
	if example == "" {
		return content
	}
	return bytes.Replace(content, []byte(example+"\n"), []byte(header), 1)
}

// withoutHeader returns a Go file without its header, so that files of different years are
// equal. The header is the comment at the top, if an empty line follows.
func withoutHeader(name string, content []byte) []byte {
	if path.Ext(name) != ".go" {
		return content
	}
	rest := content
	if bytes.HasPrefix(rest, []byte("/*")) {
		_, rest, _ = bytes.Cut(rest, []byte("*/\n"))
	}
	for bytes.HasPrefix(rest, []byte("//")) {
		_, rest, _ = bytes.Cut(rest, []byte("\n"))
	}
	if body, header := bytes.CutPrefix(rest, []byte("\n")); header {
		return body
	}
	return content
}
