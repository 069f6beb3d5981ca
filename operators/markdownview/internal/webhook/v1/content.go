package v1

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	viewv1 "github.com/koboshi-dev/koboshi/operators/markdownview/api/v1"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/book"
	"github.com/koboshi-dev/koboshi/operators/markdownview/internal/children"
)

// mostInline is the maximum size of markdowns and binaryAssets together, in bytes. An object
// could hold a little more, but would then have no room for its status.
const mostInline = 1 << 20

// checkContent reads the content in the object itself as a book. A missing file may be in a
// ConfigMap of contentFrom; the controller checks the complete content.
func checkContent(spec *viewv1.MarkdownViewSpec, at *field.Path, found *findings) {
	var files []book.File
	size := 0
	for _, path := range slices.Sorted(maps.Keys(spec.Markdowns)) {
		text := spec.Markdowns[path]
		size += len(text)
		files = append(files, book.File{Path: path, Data: []byte(text)})
	}
	for _, path := range slices.Sorted(maps.Keys(spec.BinaryAssets)) {
		data := spec.BinaryAssets[path]
		size += len(data)
		if _, both := spec.Markdowns[path]; both {
			found.refuse(field.Invalid(at.Child("binaryAssets").Key(path), field.OmitValueType{}, "is also in markdowns; remove one of the two entries"))
			continue
		}
		files = append(files, book.File{Path: path, Data: data})
	}
	if size > mostInline {
		found.refuse(field.Invalid(at.Child("markdowns"), field.OmitValueType{}, fmt.Sprintf(
			"has %d bytes together with binaryAssets, more than %d: move files into ConfigMaps that contentFrom names", size, mostInline)))
		return // content that is too large is not read
	}
	r := &bookReader{spec: spec, at: at, found: found, isMdBook: children.Engine(spec) == viewv1.EngineMdBook}
	r.report(book.Read(files))
}

// bookReader turns the problems of a book into findings.
type bookReader struct {
	spec     *viewv1.MarkdownViewSpec
	at       *field.Path
	found    *findings
	isMdBook bool
	// elsewhere counts the entries of SUMMARY.md whose files a ConfigMap must provide;
	// first is the problem of the first such entry.
	elsewhere int
	first     book.Problem
}

func (r *bookReader) report(b *book.Book) {
	if r.isMdBook {
		r.mdBook(b)
	}
	for _, p := range b.Problems {
		r.problem(p)
	}
	if r.elsewhere > 0 {
		message := fmt.Sprintf("line %d links to %s, which contentFrom must provide", r.first.Line, r.first.Missing)
		if r.elsewhere > 1 {
			message = fmt.Sprintf("%d links lead to files that contentFrom must provide; the first is %s in line %d", r.elsewhere, r.first.Missing, r.first.Line)
		}
		r.found.warn(r.at.Child("markdowns").Key(book.SummaryPath), message)
	}
}

func (r *bookReader) mdBook(b *book.Book) {
	r.found.warn(r.at.Child("engine"), "mdBook does not sanitize pages: HTML and scripts in them run in the readers' browsers")
	if !b.HasSummary && len(r.spec.ContentFrom) == 0 {
		r.found.refuse(field.Required(r.at.Child("markdowns").Key(book.SummaryPath), "mdBook needs SUMMARY.md"))
	}
	if r.spec.BasePath != "" && r.spec.BasePath != "/" {
		r.found.warn(r.at.Child("basePath"), "ignored, because mdBook serves only at /")
	}
}

func (r *bookReader) problem(p book.Problem) {
	at := r.at.Child("markdowns").Key(p.Path)
	if _, inline := r.spec.Markdowns[p.Path]; !inline {
		at = r.at.Child("binaryAssets").Key(p.Path)
	}
	fatal := p.Fatal || p.MdBook && r.isMdBook
	switch more := len(r.spec.ContentFrom) > 0; {
	case p.MdBook && !r.isMdBook:
	case !fatal && p.Missing != "" && more:
		// The target may be in a ConfigMap.
	case !fatal:
		r.found.warn(at, inLine(p.Line, p.Message))
	case p.Missing != "" && more:
		if r.elsewhere++; r.elsewhere == 1 {
			r.first = p
		}
	case p.Missing != "":
		r.found.refuse(field.Invalid(at, field.OmitValueType{}, inLine(p.Line, fmt.Sprintf("links to %s, which is not in markdowns", p.Missing))))
	default:
		r.found.refuse(field.Invalid(at, field.OmitValueType{}, inLine(p.Line, p.Message)))
	}
}

func inLine(line int, message string) string {
	if line == 0 {
		return message
	}
	return fmt.Sprintf("line %d: %s", line, message)
}

// checkSources checks contentFrom.
func checkSources(sources []viewv1.ContentSource, at *field.Path, found *findings) {
	type placed struct{ name, path string }
	whole := map[placed]bool{}
	for i := range sources {
		source, at := &sources[i], at.Index(i)
		cm := &source.ConfigMap
		checkName(cm.Name, at.Child("configMap", "name"), found)
		if len(cm.Items) == 0 {
			at, place := at.Child("configMap"), placed{cm.Name, source.Path}
			if whole[place] {
				found.refuse(field.Duplicate(at.Child("name"), cm.Name))
			}
			whole[place] = true
		}
		checkItems(cm.Items, at.Child("configMap", "items"), found)
	}
}
