// Package sbom lists what a Go program consists of, from the build information that the go command
// writes into each program.
//
//	program ──build information──▶ modules ──▶ SPDX 2.3, as JSON
package sbom

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// MediaType is the media type of SPDX documents in JSON, as it is registered with IANA.
const MediaType = "application/spdx+json"

// PredicateType names SPDX documents in in-toto statements.
const PredicateType = "https://spdx.dev/Document"

// Image identifies the image for one platform.
type Image struct {
	// Name is the name of the image without a tag.
	Name string
	// Digest is the digest of the image, such as sha256:0123.
	Digest string
}

// Make lists the modules of an image's programs, which are files on this machine. The document
// depends only on the arguments.
func Make(image Image, programs []string, tool string, at time.Time) ([]byte, error) {
	d := document{modules: map[string]string{}}
	root := d.add(&spdxPackage{
		SPDXID: reference("Image"), Name: image.Name, VersionInfo: image.Digest,
		Checksums: sha256Of(strings.TrimPrefix(image.Digest, "sha256:")), PrimaryPackagePurpose: "CONTAINER",
	})
	d.relate(reference("DOCUMENT"), "DESCRIBES", root)
	for _, path := range programs {
		if _, err := d.program(root, "CONTAINS", path); err != nil {
			return nil, err
		}
	}
	return d.encode(image.Name, image.Digest, tool, at)
}

// MakeForProgram lists the modules of one program, which is a file on this machine. The document
// depends only on the arguments and on the file.
func MakeForProgram(path, tool string, at time.Time) ([]byte, error) {
	d := document{modules: map[string]string{}}
	sum, err := d.program(reference("DOCUMENT"), "DESCRIBES", path)
	if err != nil {
		return nil, err
	}
	return d.encode(filepath.Base(path), "sha256:"+sum, tool, at)
}

// document is an SPDX document that is not complete yet.
type document struct {
	packages      []*spdxPackage
	relationships []relationship
	modules       map[string]string // their identifiers
}

// unknown is what SPDX says of what nobody has looked for.
const unknown = "NOASSERTION"

func (d *document) add(p *spdxPackage) (id string) {
	p.DownloadLocation, p.LicenseConcluded, p.LicenseDeclared, p.CopyrightText = unknown, unknown, unknown, unknown
	d.packages = append(d.packages, p)
	return p.SPDXID
}

func (d *document) relate(from, how, to string) {
	if r := (relationship{from, how, to}); !slices.Contains(d.relationships, r) {
		d.relationships = append(d.relationships, r)
	}
}

// encode returns the document in JSON. Its name and digest are those of what it describes.
func (d *document) encode(name, digest, tool string, at time.Time) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(spdxDocument{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: reference("DOCUMENT"), Name: name,
		DocumentNamespace: "https://spdx.org/spdxdocs/koboshi/" + name + "@" + digest,
		CreationInfo:      creationInfo{at.UTC().Format(time.RFC3339), []string{"Tool: " + tool}},
		Packages:          d.packages, Relationships: d.relationships,
	})
	return text.Bytes(), err
}

// program adds a program with its modules, and relates it to what it belongs to. It returns the SHA-256
// of the program.
func (d *document) program(owner, how, path string) (sum string, err error) {
	info, err := buildinfo.ReadFile(path)
	if err == nil {
		sum, err = sumOf(path)
	}
	if err != nil {
		return "", fmt.Errorf("listing the modules of %s: %w", path, err)
	}
	name := filepath.Base(path)
	program := d.add(&spdxPackage{
		SPDXID: reference("Program-" + name), Name: name, PackageFileName: name, Checksums: sha256Of(sum),
		PrimaryPackagePurpose: "APPLICATION", SourceInfo: "built from the package " + info.Path,
	})
	d.relate(owner, how, program)
	d.relate(program, "DEPENDS_ON", d.module(&debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}))
	d.relate(program, "DEPENDS_ON", d.module(&info.Main))
	for _, m := range info.Deps {
		d.relate(program, "DEPENDS_ON", d.module(m))
	}
	return sum, nil
}

// module adds a module, unless another program has it too.
func (d *document) module(m *debug.Module) (id string) {
	if m.Replace != nil && isFolder(m.Replace.Path) {
		// The path of the folder says nothing on other machines.
		m = &debug.Module{Path: m.Path, Version: "replaced by a folder"}
	} else if m.Replace != nil {
		m = m.Replace
	}
	key := m.Path + "@" + m.Version
	if id, ok := d.modules[key]; ok {
		return id
	}
	p := &spdxPackage{
		SPDXID: reference("Module-" + key), Name: m.Path, VersionInfo: m.Version, PrimaryPackagePurpose: "LIBRARY",
		ExternalRefs: []externalRef{{"PACKAGE-MANAGER", "purl", purl(m)}},
	}
	if m.Sum != "" {
		p.Comment = "the sum in go.sum, over all files of the module, is " + m.Sum
	}
	id = d.add(p)
	d.modules[key] = id
	return id
}

func isFolder(replacement string) bool {
	return strings.HasPrefix(replacement, ".") || filepath.IsAbs(replacement)
}

// purl returns the package URL of a module. Only released versions are part of it.
func purl(m *debug.Module) string {
	url := "pkg:golang/" + strings.ToLower(m.Path)
	if strings.HasPrefix(m.Version, "v") || m.Path == "stdlib" {
		url += "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	}
	return url
}

// reference makes an SPDX identifier, which may have only letters, digits, dots and hyphens. The
// end of a hash keeps apart what differs only in other characters.
func reference(text string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, text)
	if clean != text {
		sum := sha256.Sum256([]byte(text))
		clean += "-" + hex.EncodeToString(sum[:4])
	}
	return "SPDXRef-" + clean
}

func sha256Of(value string) []checksum { return []checksum{{"SHA256", value}} }

// sumOf returns the SHA-256 of a file, in hexadecimal.
func sumOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
